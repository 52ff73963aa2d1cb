package fence

// Unfenceable returns why a node could not be fenced if it were tainted now; nil if it could.
func Unfenceable(f Facts) *Refusal {
	refused := append(f.ask(&Step{Status: *f.Status.DeepCopy()}), f.withoutManager()...)
	if len(refused) == 0 {
		return nil
	}
	return Refuse(refused[0].Reason, "tainted, node %s would lose its pods, and its volumes would be held: %s", f.Node.Name, messages(refused))
}
