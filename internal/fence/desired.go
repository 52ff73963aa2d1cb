package fence

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// want is what a record wants of one of its fences. Wants and NetworkFences of all records together decide what
// is done with each NetworkFence.
type want int

const (
	// toKeep what is blocked, and ask for nothing.
	toKeep want = iota
	// toBlock: ask until the fence is confirmed, and see that it stays.
	toBlock
	// toRelease: unfence as soon as no other fence wants the addresses blocked.
	toRelease
)

func (f Facts) wants(r v1alpha1.Fence) want {
	current := isFencing(f.Status.Phase) && r.Incident == f.Status.Incident
	switch {
	case f.Status.Phase == v1alpha1.NodeUnfencing, current && f.withdrawn(r):
		return toRelease
	case current:
		return toBlock
	}
	return toKeep
}

func isFencing(p v1alpha1.NodeFencePhase) bool {
	return p == v1alpha1.NodeFencing || p == v1alpha1.NodeFenced || p == v1alpha1.NodeDrained
}

// withdrawn tells whether a fence of this incident is not wanted any more. It was never confirmed and no volume was
// released for it, so no reboot is needed.
func (f Facts) withdrawn(r v1alpha1.Fence) bool {
	return !f.mayHaveLetGo(r) && (f.backUnfenced() || f.Policy.Mode(r.Driver) != ModeFence)
}

// mayHaveLetGo tells whether volumes may be in use elsewhere on account of a fence.
func (f Facts) mayHaveLetGo(r v1alpha1.Fence) bool {
	return r.LetGo || r.State == v1alpha1.FenceFenced || f.Override.Gate == GateAttach
}

// backUnfenced: the node is Ready in the boot in which a fence was asked for, and
// nothing of this incident has let a volume go.
func (f Facts) backUnfenced() bool {
	return f.Node.Ready && !f.gone() && f.Node.Machine.BootID == f.Status.Node.BootID && f.asked() &&
		!slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool { return r.Incident == f.Status.Incident && f.mayHaveLetGo(r) })
}

// asked tells whether a fence was asked for in this incident: then it may be in effect,
// and only a reboot is sure to end the mounts of before.
func (f Facts) asked() bool { return asked(f.Status) }

func asked(s v1alpha1.NodeFenceStatus) bool {
	return slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.Incident == s.Incident })
}

// released: the NetworkFence is Unfenced or may become so at any time.
func released(r v1alpha1.Fence) bool {
	return r.State == v1alpha1.FenceUnfencing || r.State == v1alpha1.FenceLeaving
}

// follow does for each fence on record what the record wants. Fences that are unfenced and gone leave the record.
func (f Facts) follow(step *Step) (refused []Refusal) {
	var left []v1alpha1.Fence
	for _, r := range step.Status.Fences {
		n, there := f.object(r.Name)
		switch want := f.wants(r); {
		case want == toRelease:
			if f.release(step, &r, n, there) {
				continue
			}
		case released(r) && there:
			f.remove(step, n) // never flipped back
		case released(r):
			r.State = v1alpha1.FenceRequested // blocked or not: it is unfenced once more at the end
		case want == toKeep && there && !n.Blocks():
			f.remove(step, n) // csi-addons would block a node that works again
		case want == toBlock:
			if refusal := f.block(step, &r, n, there); refusal != nil {
				refused = append(refused, *refusal)
			}
		}
		left = append(left, r)
	}
	step.Status.Fences = left
	return refused
}

// block compares a fence with its NetworkFence. What speaks against the fence may have come up since it was asked for.
func (f Facts) block(step *Step, r *v1alpha1.Fence, n NetworkFence, there bool) *Refusal {
	r.LetGo = f.mayHaveLetGo(*r)
	refusal := f.doubt(*r, there && n.Blocks())
	if r.State = v1alpha1.FenceRequested; refusal != nil {
		r.Message = "" // if it was in effect, it may be no more: it is recreated when the doubt is gone
		f.remove(step, n)
		return refusal
	}
	switch {
	case !there:
		r.Message = ""
		step.Create = append(step.Create, object(f.Node.Name, step.Status.Node.BootID, *r, false))
	case n.Deleting:
	case !n.asked(*r):
		r.Message = changedMessage // only a new one is sure to be looked at
		f.remove(step, n)
	case n.Blocks():
		r.State, r.Message, r.LetGo = v1alpha1.FenceFenced, "", true
	case n.failed():
		f.askAnew(step, r, n)
	}
	return nil
}

// release brings one fence to its end: Unfenced, confirmed, deleted. Deleting alone would leave the address blocked
// for ever. It tells whether the end is reached.
func (f Facts) release(step *Step, r *v1alpha1.Fence, n NetworkFence, there bool) (done bool) {
	_, wanted := f.wantedBy(*r)
	switch {
	case !released(*r):
		f.unfence(r)
	case !there && r.State == v1alpha1.FenceLeaving:
		return true
	case !there && !wanted: // it was deleted, and the address is still blocked
		step.Create = append(step.Create, object(f.Node.Name, step.Status.Node.BootID, *r, true))
	case !there, n.Deleting:
	case wanted, r.State == v1alpha1.FenceLeaving:
		f.remove(step, n)
	case !slices.Equal(n.CIDRs, r.CIDRs):
		r.Message = changedMessage
		f.remove(step, n)
	case !n.Unfenced:
		step.Unfence = append(step.Unfence, n)
	case n.LetIn():
		r.State, r.Message, r.Since = v1alpha1.FenceLeaving, "", f.now()
	case n.failed():
		f.askAnew(step, r, n)
	}
	return false
}

// unfence a fence from here on.
func (f Facts) unfence(r *v1alpha1.Fence) {
	r.State, r.Message, r.Failures, r.FailedUID, r.Since = v1alpha1.FenceUnfencing, "", 0, "", f.now()
}

func (f Facts) now() metav1.Time { return metav1.NewTime(f.Now.Truncate(time.Second)) }

// wantedBy tells whether another fence wants one of the addresses blocked, of this node or of another, and says of which.
// References are counted by address alone: two clusterIDs may be one storage cluster, and all drivers of one share one block list.
func (f Facts) wantedBy(r v1alpha1.Fence) (who string, wanted bool) {
	for _, o := range f.Others {
		for _, theirs := range o.Status.Fences {
			_, there := f.object(theirs.Name)
			made := there || theirs.State == v1alpha1.FenceFenced || theirs.LetGo
			if cidr := common(r, theirs); cidr != "" && made && !released(theirs) {
				return fmt.Sprintf("its address %s also keeps out node %s, which may not be readmitted yet; if that machine is known to be off: %s", cidr, o.Node.Name, o.command(GateUnfence)), true
			}
		}
	}
	return "", slices.ContainsFunc(f.Status.Fences, func(own v1alpha1.Fence) bool { return !released(own) && common(r, own) != "" })
}

// common address of two fences.
func common(a, b v1alpha1.Fence) string {
	if i := slices.IndexFunc(a.CIDRs, func(c string) bool { return slices.Contains(b.CIDRs, c) }); i >= 0 {
		return a.CIDRs[i]
	}
	return ""
}

// remove a NetworkFence; what it has blocked stays blocked. One that is Unfenced stays until every node that counts on the same address
// has noticed.
func (f Facts) remove(step *Step, n NetworkFence) {
	if n.Name != "" && !n.Deleting && !(n.Unfenced && f.countedOn(n)) {
		step.Delete = append(step.Delete, n)
	}
}

// countedOn tells whether another node is on record as fenced by an address of a NetworkFence.
func (f Facts) countedOn(n NetworkFence) bool {
	return slices.ContainsFunc(f.Others, func(o Other) bool {
		return isFencing(o.Status.Phase) && slices.ContainsFunc(o.Status.Fences, func(theirs v1alpha1.Fence) bool {
			return theirs.Incident == o.Status.Incident && theirs.State == v1alpha1.FenceFenced && common(v1alpha1.Fence{CIDRs: n.CIDRs}, theirs) != ""
		})
	})
}

const changedMessage = "the NetworkFence was changed; Fairlead recreates it"

// askAnew replaces a NetworkFence that the driver has refused: csi-addons itself
// waits longer after each failure, up to a quarter of an hour.
func (f Facts) askAnew(step *Step, r *v1alpha1.Fence, n NetworkFence) {
	r.Message = n.Message
	if n.UID == r.FailedUID { // the one that failed before; times would be of two clocks
		f.remove(step, n)
		return
	}
	if wait := backoff(r.Failures) - f.Now.Sub(r.Since.Time); wait > 0 {
		step.lookAgain(wait)
		return
	}
	r.Failures, r.FailedUID, r.Since = r.Failures+1, n.UID, f.now()
}

// backoff doubles from 5 s to 2 min.
func backoff(failures int) time.Duration {
	return min(5*time.Second<<min(failures, 10), 2*time.Minute)
}

func (f Facts) object(name string) (NetworkFence, bool) {
	i := slices.IndexFunc(f.Fences, func(n NetworkFence) bool { return n.Name == name })
	if i < 0 {
		return NetworkFence{}, false
	}
	return f.Fences[i], true
}
