package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	backTainted = "the node has the taint node.kubernetes.io/out-of-service but is Ready, as before it was lost: a healthy node is not fenced, and its volumes are attached nowhere else; the fence is withdrawn. Take the taint away, or shut the node down"
	backAgain   = "the node is Ready again, as before it was lost, and no volume was released: the fence is withdrawn"
	notRebooted = "the node is Ready again but has not booted since it was lost: it still has its old mounts; reboot it"
	offAgain    = "fencing is switched off for " + rbd + " of a: the fence is withdrawn"
)

// The API server may refuse a fence until the node is well.
func TestRecordedFenceIsWithdrawnFromReadyNode(t *testing.T) {
	for name, how := range map[string]func(*story){
		"not created":            func(s *story) { s.Fences = nil },
		"not answered":           func(*story) {},
		"confirmed, not seen":    func(s *story) { s.csi() },
		"deleted by an operator": func(s *story) { s.changeFirst(deleting) },
	} {
		t.Run(name, func(t *testing.T) {
			s := requested(t).do(how).returnSameBoot().taint(false).look().want(v1alpha1.NodeUnfencing, ReasonUnfencing, backAgain)
			s.wantHeld(true).withdraw().wantHealthy().wantHeld(true) // old containers have a grace period
			s.pass(endsWithin + time.Second).look().wantHealthy().wantHeld(false)
		})
	}
}

// A hung leader creates the NetworkFence only when the incident is over.
func TestLateFenceOfHungLeaderIsWithdrawn(t *testing.T) {
	s := requested(t)
	late := s.Fences[0]
	s.returnSameBoot().taint(false).look().withdraw().wantHealthy().objects(late).answer()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "a NetworkFence of an incident that is over blocks the node: unfencing the node")
	s.withdraw().wantHealthy()
	// After the loss of the record, it is unknown whether volumes were released.
	s.Status.Ended, s.Fences = nil, []NetworkFence{late}
	s.answer().wantObjects(fencedOf1)
	// Ended incidents are remembered for one boot.
	s.objects()
	for n := range 2 * maxEnded {
		s.Status.Ended = append(s.Status.Ended, string(rune('a'+n)))
	}
	s.look()
	s.wantThat(len(s.Status.Ended) == maxEnded && s.Status.Ended[maxEnded-1] == string(rune('a'+2*maxEnded-1)), "the last incidents are remembered")
	s.boot("boot-2").look().wantThat(len(s.Status.Ended) == 0, "nothing is remembered after a boot")
}

// The override is for the taint only: old containers may still run.
func TestOverriddenTaintKeepsGracePeriod(t *testing.T) {
	for _, tainted := range []bool{false, true} {
		lost(t).taint(tainted).look().override(GateTaint).hold().returnSameBoot().taint(false).look().wantHeld(true)
	}
}

func TestTaintedNodeThatReturnsIsNotFenced(t *testing.T) {
	s := requested(t).hold().returnSameBoot().look().want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted).wantObjects(unfencedOf1).wantHeld(true)
	r := RemoveTaint(s.Node, Record{Status: s.Status})
	must.True(t, r == nil, "its taint may not go: %+v", r)
	s.withdraw().wantPhase(v1alpha1.NodeHealthy, ReasonTaintedButReady).wantHeld(true).taint(false).look()
	s.wantHeld(true) // what runs there is given the time to end
	s.pass(endsWithin).look().wantHealthy().wantHeld(false)
}

func TestDelayedWithdrawalIsReported(t *testing.T) {
	s := requested(t).returnSameBoot().look().want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted)
	s.pass(unanswered + time.Second).look()
	s.want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted+" (waiting for NetworkFence "+s.Fences[0].Name+": "+noAnswer+")")
	s.csiFails("no leader").look().want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted+" ("+rbd+" of a: no leader)")
	s.pass(10 * time.Second).look().wantObjects(deletingOf1).answer().withdraw()
}

// The node is lost again before the withdrawal ends.
func TestWithdrawnFenceIsRequestedAgain(t *testing.T) {
	for _, unfence := range []func(*story){func(*story) {}, func(s *story) { s.csi() }} {
		s := requested(t).returnSameBoot().look().wantObjects(unfencedOf1).do(unfence)
		s.lose().look().wantHeld(true).wantObjects(deletingOf1).answer()
		s.wantObjects(fencedOf1).wantHeld(true).answer().wantDrained().wantHeld(false)
	}
}

// Volumes may have been released: only a boot is sure to end what runs there.
func TestFenceThatReleasedVolumesIsNotWithdrawn(t *testing.T) {
	for name, how := range map[string]func(*story){
		"confirmed once":                  func(s *story) { s.answer().wantHeld(false).changeFirst(deleting).look().csi() },
		"released by override":            func(s *story) { s.override(GateAttach).look().wantHeld(false) },
		"released by an earlier override": func(s *story) { s.override(GateAttach).look().Override = Override{} },
	} {
		for _, tainted := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				s := requested(t).do(how).returnSameBoot().taint(tainted).look().answer().want(v1alpha1.NodeFenced, ReasonNotRebooted, notRebooted).wantObjects(fencedOf1)
				must.True(t, RemoveTaint(s.Node, Record{Name: "node-1", Status: s.Status, Override: s.Override}) != nil, "its taint may go")
			})
		}
	}
}

// A fence of an earlier incident ends with its own reboot.
func TestEarlierIncidentStaysBlocked(t *testing.T) {
	for _, tainted := range []bool{true, false} {
		s := fenced(t).boot("boot-2").look().lose().look().wantObjects(fencedOf1, fencedOf1).returnSameBoot().taint(tainted)
		s.look().wantObjects(fencedOf1, deletingOf1).answer().wantObjects(fencedOf1)
		s.taint(false).look().pass(time.Minute).look().withdraw().wantHealthy()
	}
}

// switchRBD to a mode, and no other driver.
func (s *story) switchRBD(mode Mode) *story {
	storages := s.Policy.Storages
	s.Policy.Storages = func(driver string) (StoragePolicy, bool) {
		if driver == rbd {
			return StoragePolicy{Mode: mode}, true
		}
		return storages(driver)
	}
	return s
}

func TestSwitchingOffWithdrawsUnconfirmedFence(t *testing.T) {
	for name, c := range map[string]struct {
		mode Mode
		how  func(*story)
	}{
		"off":                 {ModeOff, func(*story) {}},
		"off after a failure": {ModeOff, func(s *story) { s.csiFails("no leader"); s.look() }},
		"off before creation": {ModeOff, func(s *story) { s.Fences = nil }},
		"guard only":          {ModeGuard, func(*story) {}},
	} {
		t.Run(name, func(t *testing.T) {
			s := requested(t).do(c.how).switchRBD(c.mode).look().wantPhase(v1alpha1.NodeFencing, ReasonSwitchedOff)
			s.wantObjects(unfencedOf1).wantHeld(c.mode == ModeGuard).withdraw().wantHeld(c.mode == ModeGuard)
			if c.mode == ModeOff {
				s.want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
			} else {
				s.wantPhase(v1alpha1.NodeFencing, ReasonGuardOnly)
			}
			s.mode(ModeFence).look().answer().wantDrained()
		})
	}
}

// Another fence of the node blocks the same address: unfencing waits for the end of that fence.
func TestSwitchingOffKeepsOtherFence(t *testing.T) {
	s := healthy(t).loseWith(cephFS, "a", "10.0.0.1/32")
	s.change(s.Fences[1].Name, succeeded).look()
	fencedOfFS, unfencedOfFS := "Fenced [10.0.0.1/32] fence-"+cephFS, "Unfenced [10.0.0.1/32] fence-"+cephFS
	s.wantObjects(fencedOf1, fencedOfFS).switchRBD(ModeOff).look().want(v1alpha1.NodeFencing, ReasonSwitchedOff, offAgain).wantObjects(deletingOf1, fencedOfFS).answer()
	s.wantObjects(fencedOfFS).want(v1alpha1.NodeFencing, ReasonSwitchedOff, offAgain)
	s.bootUntainted("boot-2").wantObjects(unfencedOfFS, unfencedOf1).withdraw().wantHealthy()
}

// Two nodes behind one address that are both to be unfenced do not wait for each other.
func TestWithdrawnNodesDoNotWaitForEachOther(t *testing.T) {
	s := requested(t).returnSameBoot()
	s.Fences = append(s.Fences, NetworkFence{Name: "of-node-2", CIDRs: []string{"10.0.0.1/32"}})
	s.beside(sharing("node-2", v1alpha1.NodeFencing, v1alpha1.FenceRequested)).look()
	s.want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted+" ("+keepsOut("node-2")+")")
	s.wantObjects(deletingOf1, "Fenced [10.0.0.1/32] ") // the deletion keeps csi-addons from fencing a working node later
	must.True(t, len(s.unfenced) == 0 && s.Status.Fences[0].State == v1alpha1.FenceUnfencing, "unfenced %v, record %+v", s.unfenced, s.Status.Fences)
	s.beside(sharing("node-2", v1alpha1.NodeFencing, v1alpha1.FenceUnfencing)).answer().wantObjects("Fenced [10.0.0.1/32] ", unfencedOf1)
}

// The node is lost again while its address is shared. No NetworkFence changes from Unfenced to Fenced.
func TestNodeThatWaitedForASharedAddressIsFencedAgain(t *testing.T) {
	s := fenced(t).bootUntainted("boot-2").wantObjects(unfencedOf1)
	theirs := sharing("node-2", v1alpha1.NodeFencing, v1alpha1.FenceRequested)
	theirs.Status.Fences[0].VolumesReleased = true
	s.beside(theirs).look().wantReason(ReasonSharedAddress).wantObjects(deletingOf1).loseTainted().wantHeld(true)
	s.wantObjects(deletingOf1) // the new fence is created after the deletion
	s.answer().wantObjects(fencedOf1).answer().wantHeld(false)
}

// Weeks later another machine may have the address.
func TestMachineLostWhileSwitchedOffIsForgotten(t *testing.T) {
	s := lost(t).mode(ModeOff).look().want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
	s.mode(ModeFence).look().wantHeld(true) // its Node exists: it may come back with its volumes
	s.mode(ModeOff).look().deleteNode().look().wantVolumes(0).wantForgotten()
	s.mode(ModeFence).pass(30 * 24 * time.Hour).look().wantObjects().wantForgotten()
}

// Volumes may have been released because of a confirmed fence.
func TestSwitchingOffKeepsConfirmedFence(t *testing.T) {
	s := fenced(t).mode(ModeOff).look().wantDrained().changeFirst(deleting).look().wantFencing().answer().wantObjects(fencedOf1)
	s.deleteNode().look().wantVolumes(1).wantThat(len(s.Status.Fences) == 1 && !s.step.Forget, "the fence stays on record")
}
