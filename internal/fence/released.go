package fence

import (
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// releasedInThisBoot: an operator has released the volumes of this boot by gate attach, whether or not a fence came later.
// That ends with a reboot, and as the grace period does, since the kubelet ends containers that should not run.
func (f Facts) releasedInThisBoot() bool {
	s := f.Status
	ready, _ := f.since(s.ReadySince)
	over := s.Phase == v1alpha1.NodeHealthy && f.Node.Ready && !f.Node.OutOfService && ready >= endsWithin
	lost := s.Phase == v1alpha1.NodeLost || isFencing(s.Phase)
	now := lost && f.Override.Gate == GateAttach && s.Incident != "" && len(f.protected(s.Volumes)) > 0
	return !f.otherBoot() && (now || s.Released && !over)
}

// sayOldMounts warns of a node that is Ready again with mounts of volumes that were released.
func (f Facts) sayOldMounts(step *Step) {
	s := &step.Status
	if !s.Released || !f.Node.Ready {
		return
	}
	const warning = "the node is Ready again, perhaps with its old mounts, and its volumes were released by hand: where they are attached to another node, they may have two writers; switch the machine off or reboot it now"
	switch {
	case s.Phase == v1alpha1.NodeHealthy && s.Reason == ReasonReady:
		step.warn(v1alpha1.NodeHealthy, ReasonOldMounts, warning)
		step.lookAgain(endsWithin)
	case s.Phase == v1alpha1.NodeHealthy && s.Reason == ReasonTaintedButReady:
		step.warn(v1alpha1.NodeHealthy, ReasonTaintedButReady, warning+". It has the taint "+OutOfServiceTaint)
	case s.Phase == v1alpha1.NodeFencing && !strings.HasPrefix(s.Message, warning):
		step.warn(v1alpha1.NodeFencing, ReasonOldMounts, warning+". The fence: "+s.Message)
	}
}
