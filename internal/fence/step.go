package fence

import (
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Step is what to do next for a boot.
type Step struct {
	// Spec to record. If it differs from what was read, or a request is Consumed, the controller only writes it: all actions
	// follow from what is recorded.
	Spec v1alpha1.NodeFenceSpec
	// Status that follows from the spec.
	Status v1alpha1.NodeFenceStatus
	// Consumed: the request of a person was carried out, or is void.
	Consumed bool
	// Void is a request that was made of another state of the node.
	Void *v1alpha1.Act
	// Create these NetworkFences.
	Create []NetworkFence
	// Unfence and Delete these, if they still have the version that was read.
	Unfence, Delete []NetworkFence
	// RemoveTaint of Fairlead's own from the node.
	RemoveTaint bool
	// Forget the record: the boot is over or its machine gone, and nothing is held or fenced.
	Forget bool
	// Warning: an operator should look at the reason.
	Warning bool
	// After is when to look again without an event; 0: never.
	After time.Duration
}

func (s *Step) say(phase v1alpha1.NodeFencePhase, reason, message string) {
	s.Status.Phase, s.Status.Reason, s.Status.Message, s.Warning = phase, reason, message, false
}

func (s *Step) warn(phase v1alpha1.NodeFencePhase, reason, message string) {
	s.say(phase, reason, message)
	s.Warning = true
}

func (s *Step) lookAgain(after time.Duration) {
	if s.After == 0 || after < s.After {
		s.After = after
	}
}
