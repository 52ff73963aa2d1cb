package fence

import (
	"slices"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// What is on a NodeFence beside its status.
const (
	// PhaseLabel has the phase, so that the few nodes in an incident can be listed, and
	// PhaseLabelValue beside. It says Healthy of no node in an incident: it is written before the status of
	// a node that gets lost, and after that of one that is healthy again.
	PhaseLabel = "fairlead.io/phase"
	// RecordFinalizer keeps the record while it is the only memory of what a lost
	// node held, and of what was fenced for it.
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

// Keep tells whether a record must not be deleted: it could not be made anew.
func Keep(s v1alpha1.NodeFenceStatus) bool {
	return s.Phase != "" && s.Phase != v1alpha1.NodeHealthy || len(s.Fences) > 0
}

// Forgets tells whether a record does not hold any more what it held, or is of another boot. A cache that is late may
// say so of a node that was lost meanwhile: the node has to be read live first.
func Forgets(was, is v1alpha1.NodeFenceStatus) bool {
	if was.Node != (v1alpha1.MachineIdentity{}) && was.Node != is.Node {
		return true
	}
	return slices.ContainsFunc(was.Volumes, func(v v1alpha1.HeldVolume) bool {
		i := slices.IndexFunc(is.Volumes, func(now v1alpha1.HeldVolume) bool { return now.PersistentVolume == v.PersistentVolume })
		return i < 0 || v.Until != nil && is.Volumes[i].Until == nil
	})
}
