package fence

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// The Ready condition's time is the kubelet's, whose clock may be hours off. Only Fairlead's own measures waiting.
func TestReturnedNodeWaitsByFairleadsClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": 8 * time.Hour, "behind": -8 * time.Hour} {
		s := fenced(t)
		s.boot("boot-2")
		s.Node.ReadyChanged, s.Node.OutOfService = s.Now.Add(off), false
		s.look()
		s.want(v1alpha1.NodeReturned, ReasonSettling, "the node has rebooted; it is readmitted once it has been Ready for 1m0s")
		if s.step.After != DefaultReadyFor {
			t.Errorf("clock %s: it is looked at again after %s", name, s.step.After)
		}
		s.pass(DefaultReadyFor).look()
		s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")
	}
}

// A node that is Ready again waits from the start, also if Fairlead did not see that it was not Ready.
func TestFlapRestartsReadiness(t *testing.T) {
	s := fenced(t)
	s.boot("boot-2")
	s.taint(false).look()
	s.pass(DefaultReadyFor - time.Second)
	s.Node.ReadyChanged = s.Node.ReadyChanged.Add(30 * time.Second)
	s.look()
	s.pass(2 * time.Second).look()
	s.wantReason(ReasonSettling)
}

// Another leader's clock was ahead: what it wrote is of the future.
func TestFutureTimesAreNotWaitedFor(t *testing.T) {
	s := fenced(t)
	s.boot("boot-2")
	s.Node.OutOfService = false
	s.pass(8 * time.Hour).look()
	s.pass(-8 * time.Hour).look()
	s.pass(DefaultReadyFor).look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")

	s = healthy(t)
	s.pass(8 * time.Hour).look()
	s.pass(-8 * time.Hour)
	if s.watched() {
		t.Error("a look in the future passes for a recent one")
	}
	s.look()
	if seen := s.Status.LastHealthy; seen.After(s.Now) || s.Status.Identities[0].Addresses[0].LastSeen.After(s.Now) {
		t.Errorf("it was last healthy at %s, and it is %s", seen, s.Now)
	}
}

// An address that was recorded in the future would never be too old.
func TestFutureAddressesCountAsCurrent(t *testing.T) {
	s := healthy(t)
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
	s.Status.Identities[0].Addresses[0].LastSeen = metav1.NewTime(noon.Add(8 * time.Hour))
	s.pass(time.Minute).look()
	for _, a := range s.Status.Identities[0].Addresses {
		if a.LastSeen.After(s.Now) {
			t.Errorf("%s was last seen at %s, and it is %s", a.CIDR, a.LastSeen, s.Now)
		}
	}
}

// A kubelet whose clock is behind says that its node was lost long ago; then its addresses would not be stale.
func TestLossIsNotBeforeTheNodeWasSeenReady(t *testing.T) {
	s := healthy(t)
	s.pass(3 * time.Hour) // Fairlead was down
	s.Node.Ready, s.Node.ReadyChanged, s.Node.OutOfService, s.Ledger = false, noon.Add(-5*time.Hour), true, nil
	s.look()
	s.wantReason(ReasonStaleLedger)
	if !s.Status.LostSince.Time.Equal(s.Now) {
		t.Errorf("lost since %s, and it is %s", s.Status.LostSince, s.Now)
	}
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
		s := healthy(t)
		s.pass(time.Hour)
		s.Holding = nil
		test.then(s)
		s.look()
		s.wantHealthy()
		if held := len(s.Status.Volumes) > 0; held != test.held || s.attach() == nil == test.held {
			t.Errorf("%s: it is held: %t, on record are %v", name, held, s.Status.Volumes)
		}
		s.pass(endsWithin).look()
		s.wantHeld(false)
	}
}
