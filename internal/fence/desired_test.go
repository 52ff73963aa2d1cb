package fence

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	backTainted = "the node has the taint node.kubernetes.io/out-of-service but is Ready: a healthy node is not fenced, and its volumes are attached nowhere else; take the taint away, or shut the node down"
	withdrawn   = backTainted + "; the fence is withdrawn"
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
			s := requested(t).do(how).hold().comeBack().taint(false).look().want(v1alpha1.NodeUnfencing, ReasonUnfencing, backAgain)
			s.wantHeld(true).withdraw().wantPhase(v1alpha1.NodeHealthy, ReasonStillMounted).wantHeld(true) // old containers have a grace period
			s.pass(endsWithin).look().is(saysHealthy).wantHeld(false)
		})
	}
}

func TestTaintedNodeThatReturnsIsNotFenced(t *testing.T) {
	s := requested(t).hold().comeBack().look().want(v1alpha1.NodeFencing, ReasonTaintedButReady, withdrawn).wantObjects(unfencedOf1).wantHeld(true)
	s.withdraw().want(v1alpha1.NodeHealthy, ReasonTaintedButReady, backTainted).wantHeld(true).taint(false).look().wantHeld(true) // what runs there is given the time to end
	s.pass(endsWithin).look().is(saysHealthy).wantHeld(false)
}

func TestDelayedWithdrawalIsReported(t *testing.T) {
	s := requested(t).comeBack().look().want(v1alpha1.NodeFencing, ReasonTaintedButReady, withdrawn).pass(unanswered + time.Second).look()
	s.want(v1alpha1.NodeFencing, ReasonTaintedButReady, withdrawn+" (waiting for NetworkFence "+s.Fences[0].Name+": "+noAnswer+")")
	s.csiFails("no leader").look().want(v1alpha1.NodeFencing, ReasonTaintedButReady, withdrawn+" ("+rbd+" of a: no leader)")
	s.pass(10 * time.Second).look().wantObjects(deletingOf1).answer().wantObjects(unfencedOf1).answer().pass(lateWithin).look().withdraw()
}

// The node is lost again before the withdrawal ends.
func TestWithdrawnFenceIsRequestedAgain(t *testing.T) {
	for name, unfence := range map[string]func(*story){"unfenced": func(s *story) { s.csi() }, "not answered": func(*story) {}} {
		t.Run(name, func(t *testing.T) {
			s := requested(t).comeBack().look().wantObjects(unfencedOf1).do(unfence)
			first := s.Fences[0].Name
			s.lose().look().wantHeld(true).answer().wantHeld(true).answer().answer().wantObjects(fencedOf1)
			s.wantThat(s.Fences[0].Name != first, "the second fence has another name").answer().is(saysDrained).wantHeld(false)
		})
	}
}

// Volumes may have been released: only a boot is sure to end what runs there.
func TestFenceThatReleasedVolumesIsNotWithdrawn(t *testing.T) {
	for name, how := range map[string]func(*story){
		"confirmed once":  func(s *story) { s.answer().wantHeld(false).changeFirst(deleting).look().csi() },
		"released by act": func(s *story) { s.act(GateAttach).wantHeld(false) },
	} {
		for _, tainted := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				s := requested(t).do(how).comeBack().taint(tainted).look().answer().wantObjects(fencedOf1)
				s.wantThat(strings.Contains(s.Status.Message, notRebooted), "it says that it was not rebooted")
				must.True(t, RemoveTaint(s.Node, Record{Spec: s.Spec}) != nil, "its taint may go")
				s.bootUntainted("boot-2").wantObjects(unfencedOf1)
			})
		}
	}
}

// The new boot is lost and comes back, and nothing was released of it. The fence of the earlier boot ends with its own reboot.
func TestFenceOfEarlierBootStays(t *testing.T) {
	for name, tainted := range map[string]bool{"tainted": true, "untainted": false} {
		t.Run(name, func(t *testing.T) {
			s := fenced(t).boot("boot-2").taint(false).hold(held("pv-1", rbd, "a")).look().follow().loseTainted().wantObjects(fencedOf1, fencedOf1)
			s.comeBack().taint(tainted).look().wantObjects(fencedOf1, deletingOf1).answer().wantObjects(fencedOf1)
			s.taint(false).look().pass(time.Minute).look().withdraw().wantPhase(v1alpha1.NodeHealthy, ReasonStillMounted)
		})
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
		mode   Mode
		how    func(*story)
		reason string
	}{
		"off":                 {ModeOff, func(*story) {}, ReasonNothingHeld},
		"off after a failure": {ModeOff, func(s *story) { s.csiFails("no leader").look() }, ReasonNothingHeld},
		"guard":               {ModeGuard, func(*story) {}, ReasonGuardOnly},
	} {
		t.Run(name, func(t *testing.T) {
			s := requested(t).do(c.how).switchRBD(c.mode).look().wantObjects(unfencedOf1).wantHeld(c.mode == ModeGuard)
			s.withdraw().wantReason(c.reason).wantHeld(c.mode == ModeGuard).mode(ModeFence).look().answer().is(saysDrained)
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
	s.bootUntainted("boot-2").wantObjects(unfencedOfFS, unfencedOf1).withdraw().wantForgotten()
}

// Volumes may have been released because of a confirmed fence.
func TestSwitchingOffKeepsConfirmedFence(t *testing.T) {
	s := fenced(t).mode(ModeOff).look().is(saysDrained).changeFirst(deleting).look().wantFencing().answer().wantObjects(fencedOf1)
	s.deleteNode().look().wantThat(len(s.Spec.Fences) == 1 && !s.step.Forget, "the fence stays on record")
}

// Weeks later another machine may have the address.
func TestMachineLostWhileSwitchedOffIsForgotten(t *testing.T) {
	s := lost(t).mode(ModeOff).look().want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
	s.mode(ModeFence).look().wantHeld(true) // its Node exists: it may come back with its volumes
	s.mode(ModeOff).look().deleteNode().look().wantForgotten().mode(ModeFence).pass(30 * 24 * time.Hour).look().wantObjects()
}

// Two nodes behind one address that are both to be unfenced do not wait for each other.
func TestWithdrawnNodesDoNotWaitForEachOther(t *testing.T) {
	s := requested(t).comeBack()
	s.Fences = append(s.Fences, NetworkFence{Name: "of-node-2", CIDRs: []string{"10.0.0.1/32"}})
	s.beside(sharing("node-2", v1alpha1.FenceRequested)).look().want(v1alpha1.NodeFencing, ReasonTaintedButReady, withdrawn+" ("+keepsOut+")")
	s.wantObjects(deletingOf1, "Fenced [10.0.0.1/32] ") // the deletion keeps csi-addons from fencing a working node later
	s.wantThat(len(s.unfenced) == 0 && s.Spec.Fences[0].State == v1alpha1.FenceUnfencing, "it is to be unfenced")
	s.beside(sharing("node-2", v1alpha1.FenceUnfencing)).answer().wantObjects("Fenced [10.0.0.1/32] ", unfencedOf1)
}

// No NetworkFence changes from Unfenced to Fenced.
func TestNodeThatWaitedForASharedAddressIsFencedAgain(t *testing.T) {
	theirs := sharing("node-2", v1alpha1.FenceRequested)
	theirs.Spec.Fences[0].VolumesReleased = true
	t.Run("in another boot", func(t *testing.T) {
		s := fenced(t).bootUntainted("boot-2").wantObjects(unfencedOf1).beside(theirs).look().wantReason(ReasonSharedAddress).wantObjects(deletingOf1)
		s.follow().hold(held("pv-1", rbd, "a")).look().loseTainted().wantHeld(true).wantObjects(deletingOf1) // the new fence is created after the deletion
		s.answer().wantObjects(fencedOf1).answer().wantHeld(false)
	})
	t.Run("in the same boot", func(t *testing.T) {
		s := requested(t).comeBack().taint(false).beside(theirs).look().wantReason(ReasonSharedAddress).wantObjects(deletingOf1).answer().wantObjects()
		s.loseTainted().wantHeld(true).wantObjects(fencedOf1).answer().wantHeld(false)
	})
}

// A person brings a class of its own name while a node is fenced (ocs-operator#3532).
func TestClassThatWasReplacedIsLookedForAnew(t *testing.T) {
	const class = "fence-" + rbd
	another, unrelated := Class{"odf-rbd", rbd, "a"}, Class{"other", other, "b"}
	t.Run("of a fence that is to be unfenced", func(t *testing.T) {
		s := fenced(t)
		s.Classes = []Class{another, unrelated}
		old := s.look().is(saysDrained).wantObjects(fencedOf1).Fences[0].Name // what is confirmed stays
		r := s.bootUntainted("boot-2").Spec.Fences[0]
		s.wantThat(r.Class == another.Name && r.Name != old && strings.HasPrefix(r.Name, old), "the fence has another class and name")
		s.answer().answer().answer().wantForgotten().wantObjects() // the old object is deleted, which ends once its class is back
	})
	t.Run("of a fence that is on no record", func(t *testing.T) {
		late := requested(t).Fences[0]
		s := healthy(t)
		s.Classes = []Class{another}
		late.Labels = map[string]string{NodeLabel: "node-1", MachineLabel: "machine-1", BootLabel: "boot-0", RecordLabel: "another"}
		s.objects(late).look().wantReason(ReasonUnfencing)
		s.wantThat(len(s.created) == 1 && slices.Equal(s.deleted, []string{late.Name}), "the node is unfenced by the other class, and the late fence is deleted")
		s.answer().answer().answer().is(saysHealthy).wantObjects()
	})
	t.Run("there is no other", func(t *testing.T) {
		s := requested(t)
		classes := s.Classes
		s.Classes = []Class{unrelated}
		s.pass(unanswered*2).look().want(v1alpha1.NodeFencing, ReasonUnanswered, "waiting for NetworkFence "+s.Fences[0].Name+
			": NetworkFenceClass "+class+" is gone, and there is no other for "+rbd+" of a: create one; csi-addons does nothing without it")
		s.Classes = classes
		s.look().answer().is(saysDrained)
	})
}

// Of two clusters one has confirmed when the node comes back: the fence of the other released nothing, and is withdrawn.
func TestFencesAreWithdrawnOneByOne(t *testing.T) {
	s := healthy(t).loseWith(cephFS, "a", "10.0.0.3/32")
	s.change(s.Fences[0].Name, succeeded).look().comeBack().taint(false).look()
	var states []string
	for _, r := range s.Spec.Fences {
		states = append(states, r.State)
	}
	slices.Sort(states)
	must.Equal(t, states, []string{v1alpha1.FenceFenced, v1alpha1.FenceUnfencing})
}
