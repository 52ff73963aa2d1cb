package fence

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

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
	if s := f.Status; !f.Node.Ready || f.Node.OutOfService || s.Phase != "" && s.Phase != v1alpha1.NodeHealthy {
		return nil, Refuse(f.Status.Reason, "node %s is not healthy", f.Node.Name)
	}
	f.Node.Ready, f.Node.ReadyChanged = false, f.Now
	f.Node.OutOfService, f.Node.OthersTaint = true, true
	f.Ledger, f.Override = nil, Override{}
	volumes := union(f.Status.Volumes, f.Holding)
	if f.Status.Phase == "" && len(volumes) == 0 {
		return []Drilled{{Refusal: Refuse(ReasonNoIdentity, "node %s is not on record: does Fairlead's controller run?", f.Node.Name)}}, nil
	}
	all := slices.Clone(volumes)
	for _, i := range f.Status.Identities {
		all = append(all, v1alpha1.HeldVolume{PersistentVolume: drillVolume, Driver: i.Driver, ClusterID: i.ClusterID})
	}
	var drilled []Drilled
	for _, k := range keys(all) {
		if f.Policy.Mode(k.driver) != ModeOff {
			identity, _ := k.in(f.Status.Identities)
			d := Drilled{Driver: k.driver, ClusterID: k.clusterID, Volumes: k.among(volumes), Addresses: identity.Addresses}
			if d.Fence, d.Refusal = f.drill(k.among(all)); d.Refusal == nil && f.SilentManager != "" {
				d.Fence, d.Refusal = nil, Refuse(ReasonUnanswered, "%s", f.SilentManager)
			}
			drilled = append(drilled, d)
		}
	}
	return drilled, nil
}

// drill takes an incident up to the first NetworkFence, or to where fencing is refused.
func (f Facts) drill(volumes []v1alpha1.HeldVolume) (*NetworkFence, *Refusal) {
	f.Status.Volumes, f.Holding = volumes, volumes
	const rounds = 8 // lost, requested and created are three
	for range rounds {
		step := Next(f)
		if len(step.Create) > 0 {
			return &step.Create[0], nil
		}
		if equality.Semantic.DeepEqual(step.Status, f.Status) {
			break
		}
		f.Status = step.Status
	}
	return nil, &Refusal{f.Status.Reason, f.Status.Message}
}

// among are the volumes of one identity.
func (k key) among(volumes []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v v1alpha1.HeldVolume) bool { return keyOf(v) != k })
}
