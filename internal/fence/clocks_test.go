package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The clock of a kubelet may be hours off: Fairlead measures by its own clock.
func TestReturnedNodeWaitsByFairleadsClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": 8 * time.Hour, "behind": -8 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := fenced(t).boot("boot-2").taint(false)
			s.Node.ReadyChanged = s.Now.Add(off)
			s.look().wantReason(ReasonSettling).wantAfter(DefaultReadyFor).pass(DefaultReadyFor).look().is(saysUnfencing)
		})
	}
}

// A flap restarts the wait, even if Fairlead saw only its end.
func TestFlapRestartsReadiness(t *testing.T) {
	s := fenced(t).boot("boot-2").taint(false).look().pass(DefaultReadyFor - time.Second)
	s.Node.ReadyChanged = s.Node.ReadyChanged.Add(30 * time.Second)
	s.look().pass(2 * time.Second).look().wantReason(ReasonSettling)
	// The record of the present boot may be looked at last.
	n := s.namesakes()
	n.Node.ReadyChanged = n.Node.ReadyChanged.Add(time.Second)
	for i, r := range n.Records {
		if since := n.Of(i).PresentSince; r.Spec.Over {
			must.True(t, since == nil, "the node has been lost since it was recorded as Ready since %s", since)
		}
	}
}

// The clock of an earlier leader was ahead.
func TestFutureTimesAreNotWaitedFor(t *testing.T) {
	fenced(t).pass(8 * time.Hour).boot("boot-2").pass(-8 * time.Hour).taint(false).look().wantReason(ReasonSettling).pass(DefaultReadyFor).look().is(saysUnfencing)
	for _, address := range []string{"10.0.0.1/32", "10.0.0.2/32"} {
		s := healthy(t).pass(8 * time.Hour).look().pass(-8 * time.Hour).report(identity(rbd, "a", address)).look()
		s.wantThat(!s.Spec.LastSeen.After(s.Now), "the node was not seen in the future")
		for _, a := range s.Spec.Identities[0].Addresses {
			s.wantThat(!a.LastSeen.After(s.Now), "the address was not seen in the future")
		}
	}
	// Its source has been silent since, so when the address was seen is unknown.
	s := healthy(t).pass(8 * time.Hour).look().pass(-8 * time.Hour).report(identity(rbd, "a")).look()
	s.wantThat(strings.Contains(s.Spec.Identities[0].Problem, silentSince), "the source counts as silent").loseTainted().wantReason(ReasonStaleLedger)
	// It requested the fence.
	s = requested(t)
	s.Spec.Fences[0].Since = *at(s.Now.Add(8 * time.Hour))
	s.csiFails("no such pool").look().wantAfter(5 * time.Second)
	s = requested(t)
	s.Spec.Fences[0].Since = *at(s.Now.Add(8 * time.Hour))
	s.look().pass(unanswered + time.Second).look().wantReason(ReasonUnanswered)
}

// A kubelet whose clock is behind says that its node was lost long ago; then its addresses would not be stale.
func TestLossIsNotBeforeTheNodeWasSeenReady(t *testing.T) {
	s := healthy(t).pass(3 * time.Hour).taint(true) // Fairlead was down
	s.Node.Ready, s.Node.ReadyChanged = false, noon.Add(-5*time.Hour)
	s.look().wantReason(ReasonStaleLedger)
	must.Equal(t, s.Spec.LostSince.Time, s.Now)
}

// A loss begins again with each deletion of the Node, also if Fairlead did not look while the machine was registered.
func TestNodeDeletedAgain(t *testing.T) {
	for name, c := range map[string]struct{ before, skew time.Duration }{
		"before it was to be fenced": {before: deletedFor - time.Second},
		"after":                      {before: deletedFor},
		"with another leader, whose clock is behind": {before: deletedFor, skew: -3 * time.Hour},
		"with another leader, whose clock is ahead":  {before: deletedFor, skew: 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t).drop().look().pass(c.before).pass(c.skew)
			s.Started = s.Now.Add(-deletedFor)
			s.register("boot-1").drop().look().wantObjects().pass(deletedFor - time.Second).look().wantObjects().pass(time.Second).look().wantObjects(fencedOf1)
		})
	}
	for name, then := range map[string]func(*story){
		"":                           func(*story) {},
		", and another leader leads": func(s *story) { s.Started = s.Now },
		", and a person says that its volumes may be attached": func(s *story) { s.request(GateAttach).round() },
	} {
		t.Run("after its fence was on record, and Fairlead crashed"+name, func(t *testing.T) {
			s := healthy(t).dropNode()
			s.round() // the record is written first
			must.True(t, IsClosed(s.Spec), "a fence is on record")
			s.do(then).register("boot-1").drop().look().wantObjects()
			s.pass(deletedFor - time.Second).look().wantObjects().wantAfter(time.Second).pass(time.Second).look().wantObjects(fencedOf1)
		})
	}
	t.Run("what the status says then", func(t *testing.T) {
		s := healthy(t).dropNode()
		s.round()
		s.register("boot-1").drop().look().wantReason(ReasonFencing)
		must.Equal(t, s.Status.Message, "not fenced: "+rbd+" of a: the machine is fenced unless it registers again within 40s")
	})
	t.Run("another leader, which did not see the deletion, finds the fence on record", func(t *testing.T) {
		s := healthy(t).dropNode()
		s.round()
		s.Started, s.last = s.Now, Deletion{}
		s.look().wantObjects().pass(deletedFor - time.Second).look().wantObjects().pass(time.Second).look().wantObjects(fencedOf1)
	})
}

// Another leader's clock may be hours off.
func TestPeriodsAreCountedByOneClock(t *testing.T) {
	for name, skew := range map[string]time.Duration{"ahead": 3 * time.Hour, "behind": -3 * time.Hour} {
		t.Run("grace, "+name, func(t *testing.T) {
			s := lost(t).look().hold().comeBack().look().wantVolumes(1) // its kubelet was restarted
			s.pass(time.Minute + skew).Started = s.Now
			s.look().wantVolumes(1).pass(endsWithin - time.Second).look().wantVolumes(1).wantHeld(true).pass(time.Second).look().wantVolumes(0).wantHeld(false)
		})
		t.Run("deleted Node, "+name, func(t *testing.T) {
			s := healthy(t).drop().look().pass(skew)
			s.Started, s.last = s.Now, Deletion{}
			s.look().wantObjects().pass(deletedFor - time.Second).look().wantObjects().pass(time.Second).look().wantObjects(fencedOf1)
		})
	}
	s := goneMachine(t).pass(3 * time.Hour)
	s.Started = s.Now
	s.look().is(saysGone).pass(59 * time.Minute).look().is(saysGone).pass(time.Minute).look().wantReason(ReasonUnfencing)
}
