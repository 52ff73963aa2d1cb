package fence

import (
	"testing"
	"time"
)

// Another leader's clock may be hours off.
func TestGracePeriodIsCountedByOneClock(t *testing.T) {
	for name, skew := range map[string]time.Duration{"ahead": 3 * time.Hour, "behind": -3 * time.Hour} {
		s := lost(t).look().hold().returnSameBoot().look().wantVolumes(1) // its kubelet was restarted
		s.pass(time.Minute + skew).Started = s.Now
		s.look().wantVolumes(1).pass(endsWithin - time.Second).look().wantVolumes(1).wantHeld(true)
		s.pass(time.Second).look().wantThat(len(s.Status.Volumes) == 0, "the grace period ends, with a clock "+name)
	}
}

func TestMachineIsGivenUpByOneClock(t *testing.T) {
	s := goneMachine(t).pass(3 * time.Hour)
	s.Started = s.Now
	s.look().wantGone().wantAfter(time.Hour)
	s.pass(time.Hour).look().wantReason(ReasonOverridden)
}
