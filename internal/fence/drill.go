package fence

import (
	"slices"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Drilled is how fencing one storage system's client on a healthy node would go.
type Drilled struct {
	Driver, ClusterID string
	// Volumes of the node that would wait for the fence.
	Volumes []v1alpha1.HeldVolume
	// Addresses on record, which the fence would block.
	Addresses []v1alpha1.ClientAddress
	// Fence that would be requested; nil if fencing is refused.
	Fence *NetworkFence
	// Refusal to fence; nil if there is none.
	Refusal *Refusal
}

// drillVolume stands for a volume of a storage system of which the node holds none now.
const drillVolume = "drill"

// Drill plays an incident of a healthy node, for each storage system by itself: as if the node were lost and out of
// service now. Next decides, as it would in the incident, on the addresses that are on record.
func Drill(f Facts) ([]Drilled, *Refusal) {
	if f.RecordUID == "" && f.working() {
		return []Drilled{{Refusal: Refuse(ReasonNoIdentity, "node %s is not on record: does Fairlead's controller run?", f.Node.Name)}}, nil
	}
	if !f.working() || len(f.Spec.Fences) > 0 {
		return nil, Refuse(ReasonNotReady, "node %s is not healthy", f.Node.Name)
	}
	f.Ledger, f.Request, f.Spec.Volumes = nil, Request{}, union(f.Holding, f.Spec.Volumes)
	all := slices.Clone(f.Spec.Volumes)
	for _, i := range f.Spec.Identities {
		all = append(all, v1alpha1.HeldVolume{PersistentVolume: drillVolume, Driver: i.Driver, ClusterID: i.ClusterID})
	}
	var drilled []Drilled
	for _, k := range keys(all) {
		if f.Policy.Mode(k.driver) != ModeOff {
			identity, _ := k.in(f.Spec.Identities)
			d := Drilled{Driver: k.driver, ClusterID: k.clusterID, Volumes: k.among(f.Spec.Volumes), Addresses: identity.Addresses}
			d.Fence, d.Refusal = f.wouldFence(k)
			drilled = append(drilled, d)
		}
	}
	return drilled, nil
}

// wouldFence is the fence that would be requested of the node if it were lost and tainted now, or why there would be none.
func (f Facts) wouldFence(k key) (*NetworkFence, *Refusal) {
	if f.Policy.Mode(k.driver) == ModeGuard {
		return nil, Refuse(ReasonGuardOnly, "%s: Fairlead is configured to guard only", k)
	}
	f.Node.Ready, f.Node.OutOfService = false, true
	r, refusal := f.request(k, f.number(&f.Spec, k))
	if none := f.withoutManager(); refusal == nil && len(none) > 0 {
		refusal = &none[0]
	}
	if refusal != nil {
		return nil, refusal
	}
	n := f.newObject(r, false)
	return &n, nil
}

// Unfenceable returns why a node could not be fenced if it were tainted now; nil if it could.
func Unfenceable(f Facts) *Refusal {
	for _, k := range keys(f.protected(f.Spec.Volumes)) {
		if _, refusal := f.wouldFence(k); refusal != nil {
			return Refuse(refusal.Reason, "tainted, node %s would lose its pods, and its volumes would be held: not fenced: %s", f.Node.Name, refusal.Message)
		}
	}
	return nil
}

// among are the volumes of one identity.
func (k key) among(volumes []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v v1alpha1.HeldVolume) bool { return keyOf(v) != k })
}
