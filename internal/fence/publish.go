package fence

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// What is on a NodeFence beside its spec and status.
const (
	// IncidentLabel is on the records that are read one by one: of boots that are lost, fenced or over, or that withhold volumes. By the
	// label the API server finds the volumes that it holds while Fairlead is down.
	IncidentLabel = "fairlead.io/in-incident"
	// RecordFinalizer keeps the record while it is the only memory of a lost
	// node's volumes and fences.
	RecordFinalizer = "fairlead.io/node-fence"
)

// publish what the API server reads while Fairlead is down, and what people read.
func (f Facts) publish(step *Step) {
	s, status := &step.Spec, &step.Status
	f.Spec = *s
	s.Closed = f.here() && IsClosed(*s)
	s.Withheld = f.withheld(s.Volumes)
	status.Addresses, status.AddressSources = addressesOf(s.Identities)
	status.VolumeCount = len(s.Volumes)
	status.Conditions = []metav1.Condition{
		condition(v1alpha1.ConditionFenced, len(s.Fences) > 0 && !slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.State != v1alpha1.FenceFenced }), *status),
		condition(v1alpha1.ConditionHeld, len(s.Withheld) > 0, *status),
	}
}

// withheld names the volumes that are attached nowhere else on account of this boot.
func (f Facts) withheld(volumes []v1alpha1.HeldVolume) (names []string) {
	for _, v := range f.protected(volumes) {
		if f.withholds(v) {
			names = append(names, NamesOf(v)...)
		}
	}
	return names
}

func condition(kind string, is bool, s v1alpha1.NodeFenceStatus) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: cmp.Or(s.Reason, "Unknown"), Message: Clip(s.Message, 1024)}
	if is {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// withholds reports whether a volume on record is attached nowhere else on account of this boot, as the gate would judge.
func (f Facts) withholds(v v1alpha1.HeldVolume) bool {
	volume := Volume{Name: v.PersistentVolume, Driver: v.Driver, Handle: v.VolumeHandle, ClusterID: v.ClusterID}
	if v.Released && !f.working() || refused(f.Spec, volume) || f.Spec.Over {
		return false
	}
	if f.working() {
		listed := f.Node.uses(volume) && !f.Node.hasAttached(volume)
		return !v.Shared && (v.Until != nil || listed)
	}
	return !v.Shared || !f.here() || f.Node.OutOfService || IsClosed(f.Spec)
}

// IsClosed reports whether a fence of the boot is requested and is to stay.
func IsClosed(s v1alpha1.NodeFenceSpec) bool {
	return slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return !isUnfencing(r) })
}

// Keep reports whether a record must not be deleted because it could not be recreated: no Node shows what was detached
// by force, nor the addresses of earlier mounts.
func Keep(s v1alpha1.NodeFenceSpec) bool {
	return len(s.Fences) > 0 || len(s.Withheld) > 0 || s.LostSince != nil && slices.ContainsFunc(s.Volumes, isHeld) ||
		slices.ContainsFunc(s.Identities, func(i v1alpha1.StorageIdentity) bool {
			return slices.ContainsFunc(i.Addresses, func(a v1alpha1.ClientAddress) bool { return a.Earlier })
		})
}

// Forgets reports whether a new record drops a volume or is over. A stale cache may lead to that for a node that was lost
// meanwhile, so the node must be read live first.
func Forgets(was, is v1alpha1.NodeFenceSpec) bool {
	return is.Over && !was.Over || slices.ContainsFunc(was.Volumes, func(v v1alpha1.HeldVolume) bool {
		i := find(v, is.Volumes)
		return i < 0 || v.Until != nil && is.Volumes[i].Until == nil
	})
}

// sayOldMounts warns of a node that is Ready again with mounts of volumes that a person released.
func (f Facts) sayOldMounts(step *Step) {
	if !f.here() || !f.Node.Ready || !slices.ContainsFunc(step.Spec.Volumes, func(v v1alpha1.HeldVolume) bool { return v.Released }) {
		return
	}
	warning := "the node is Ready again, perhaps with its old mounts, and its volumes were released by hand: where they are attached to another node, they may have two writers; switch the machine off or reboot it now"
	switch s := step.Status; {
	case s.Reason == ReasonTaintedButReady:
		step.warn(s.Phase, s.Reason, warning+". It has the taint "+OutOfServiceTaint)
	case s.Phase != v1alpha1.NodeHealthy:
		step.warn(s.Phase, ReasonOldMounts, warning+". The fence: "+s.Message)
	default:
		step.warn(s.Phase, ReasonOldMounts, warning)
	}
}
