package fence

import (
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Step is what to do next for a node.
type Step struct {
	// Status to record. If it differs from the status that was read, the controller only
	// writes it: all actions follow from what is recorded.
	Status v1alpha1.NodeFenceStatus
	// Create these NetworkFences.
	Create []NetworkFence
	// Unfence and Delete these, if they still have the version that was read.
	Unfence, Delete []NetworkFence
	// RemoveTaint of Fairlead's own from the node.
	RemoveTaint bool
	// Forget the record: nothing is held, and the node is gone.
	Forget bool
	// Warning: an operator should look at the reason.
	Warning bool
	// After is when to look again without an event; 0: never.
	After time.Duration
}

func (s *Step) say(phase v1alpha1.NodeFencePhase, reason, message string) {
	s.Status.Phase, s.Status.Reason, s.Status.Message = phase, reason, message
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
