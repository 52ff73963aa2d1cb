package fence

import (
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Step is what to do next for a node.
type Step struct {
	// Status to record. If it differs from the one that was read, it is written,
	// and nothing else is done: what is done next follows from what is recorded.
	Status v1alpha1.NodeFenceStatus
	// Create these NetworkFences.
	Create []NetworkFence
	// Unfence and Delete these, if they are still of the version that was read.
	Unfence, Delete []NetworkFence
	// RemoveTaint that Fairlead gave the node.
	RemoveTaint bool
	// Forget the record: nothing is held, and the node is gone.
	Forget bool
	// Warning: the reason is one that somebody should look at.
	Warning bool
	// Refused: nothing is done and nothing is waited for, but that somebody sees to it.
	Refused bool
	// After is when to look again though nothing has happened; 0: never.
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
