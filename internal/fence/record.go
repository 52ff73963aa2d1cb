package fence

import (
	"slices"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// What is on a NodeFence beside its status.
const (
	// PhaseLabel has the PhaseLabelValue, to list the nodes in an incident. No node in an incident has Healthy:
	// the label is written before the status when a node is lost, and after it when the node is healthy again.
	PhaseLabel = "fairlead.io/phase"
	// RecordFinalizer keeps the record while it is the only memory of a lost
	// node's volumes and fences.
	RecordFinalizer = "fairlead.io/node-fence"
)

// PhaseLabelValue is the value of PhaseLabel: the phase, but of a node that is healthy
// again and may still write to what was detached from it by force, ReasonStillMounted.
func PhaseLabelValue(s v1alpha1.NodeFenceStatus) string {
	if s.Phase == v1alpha1.NodeHealthy && (mayHaveBeenForced(s) || slices.ContainsFunc(s.Volumes, stillHeld)) {
		return ReasonStillMounted
	}
	return string(s.Phase)
}

// stillHeld: a volume is held on account of a node that works.
func stillHeld(v v1alpha1.HeldVolume) bool {
	return (v.Until != nil || v.Detached) && (!v.Shared || v.Block)
}

// Keep reports whether a record must not be deleted because it could not be recreated: no Node shows what was detached
// by force, nor the addresses of earlier mounts.
func Keep(s v1alpha1.NodeFenceStatus) bool {
	if len(s.Fences) > 0 || s.Phase == v1alpha1.NodeHealthy && PhaseLabelValue(s) != string(v1alpha1.NodeHealthy) {
		return true
	}
	earlier := func(i v1alpha1.StorageIdentity) bool {
		return slices.ContainsFunc(i.Addresses, func(a v1alpha1.ClientAddress) bool { return a.Earlier })
	}
	return s.Phase != "" && s.Phase != v1alpha1.NodeHealthy || slices.ContainsFunc(s.Identities, earlier)
}

// Forgets reports whether a new record drops a volume or is of another boot. A stale cache may lead to that for a node
// that was lost meanwhile, so the node must be read live first.
func Forgets(was, is v1alpha1.NodeFenceStatus) bool {
	if was.Node != (v1alpha1.MachineIdentity{}) && was.Node != is.Node {
		return true
	}
	return slices.ContainsFunc(was.Volumes, func(v v1alpha1.HeldVolume) bool {
		i := find(v, is.Volumes)
		return i < 0 || v.Until != nil && is.Volumes[i].Until == nil
	})
}
