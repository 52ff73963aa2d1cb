package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The clock of a kubelet may be hours off: Fairlead measures by its own clock.
func TestReturnedNodeWaitsByFairleadsClock(t *testing.T) {
	for _, off := range []time.Duration{8 * time.Hour, -8 * time.Hour} {
		s := fenced(t).boot("boot-2")
		s.Node.ReadyChanged, s.Node.OutOfService = s.Now.Add(off), false
		s.look().wantSettling().wantAfter(DefaultReadyFor).pass(DefaultReadyFor).look().wantUnfencing()
	}
}

// A flap restarts the wait, even if Fairlead saw only its end.
func TestFlapRestartsReadiness(t *testing.T) {
	s := fenced(t).boot("boot-2").taint(false).look().pass(DefaultReadyFor - time.Second)
	s.Node.ReadyChanged = s.Node.ReadyChanged.Add(30 * time.Second)
	s.look().pass(2 * time.Second).look().wantReason(ReasonSettling)
}

// The clock of an earlier leader was ahead.
func TestFutureTimesAreNotWaitedFor(t *testing.T) {
	s := fenced(t).boot("boot-2").taint(false)
	s.pass(8*time.Hour).look().pass(-8*time.Hour).look().pass(DefaultReadyFor).look().wantPhase(v1alpha1.NodeUnfencing, ReasonUnanswered)

	for _, address := range []string{"10.0.0.1/32", "10.0.0.2/32"} {
		s = healthy(t).pass(8 * time.Hour).look().pass(-8 * time.Hour)
		must.Equal(t, s.watched(), false)
		s.report(identity(rbd, "a", address)).look().wantThat(!s.Status.LastHealthy.After(s.Now), "the last healthy time is not in the future")
		for _, a := range s.Status.Identities[0].Addresses {
			s.wantThat(!a.LastSeen.After(s.Now), "the address was not seen in the future")
		}
	}
}

// The clock of an earlier leader was ahead, and the source has been silent since. When the address was seen is unknown.
func TestAddressWithFutureTimeIsNotFresh(t *testing.T) {
	s := healthy(t).pass(8 * time.Hour).look().pass(-8 * time.Hour).report(identity(rbd, "a")).look()
	s.wantThat(strings.Contains(s.Status.Identities[0].Problem, silentSince), "the source counts as silent").loseTainted().wantReason(ReasonStaleLedger)
}

// The clock of an earlier leader was ahead when it requested the fence.
func TestRetryDoesNotWaitForFutureTimes(t *testing.T) {
	s := requested(t)
	s.Status.Fences[0].Since = *at(s.Now.Add(8 * time.Hour))
	s.csiFails("no such pool").look().wantAfter(5 * time.Second)
	s = requested(t)
	s.Status.Fences[0].Since = *at(s.Now.Add(8 * time.Hour))
	s.look().pass(unanswered + time.Second).look().wantReason(ReasonUnanswered)
}

// A kubelet whose clock is behind says that its node was lost long ago; then its addresses would not be stale.
func TestLossIsNotBeforeTheNodeWasSeenReady(t *testing.T) {
	s := healthy(t)
	s.pass(3 * time.Hour) // Fairlead was down
	s.Node.Ready, s.Node.ReadyChanged, s.Node.OutOfService, s.Ledger = false, noon.Add(-5*time.Hour), true, nil
	s.look().wantReason(ReasonStaleLedger)
	must.Equal(t, s.Status.LostSince.Time, s.Now)
}

// The controller was down while the node was lost, and its volume detached by force.
func TestUnseenLossHoldsVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*story)
		held bool
	}{
		"lost and back":              {func(s *story) { s.Node.ReadyChanged = s.Now }, true},
		"its Node was created again": {func(s *story) { s.Node.Machine.UID = "uid-2" }, true},
		"rebooted":                   {func(s *story) { s.Node.ReadyChanged, s.Node.Machine.BootID = s.Now, "boot-2" }, false},
		"Ready all the time":         {func(*story) {}, false},
	} {
		s := healthy(t).pass(time.Hour).hold().do(test.then).look().wantHealthy()
		held := len(s.Status.Volumes) > 0
		must.True(t, held == test.held && s.attach() == nil != test.held, "%s: it is held: %t, on record are %v", name, held, s.Status.Volumes)
		s.pass(endsWithin).look().wantHeld(false)
	}
}
