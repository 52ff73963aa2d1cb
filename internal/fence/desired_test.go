package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const (
	backTainted = "the node has the taint node.kubernetes.io/out-of-service but is Ready, as before it was lost: a healthy node is not fenced, and its volumes are attached nowhere else; the fence is withdrawn. Take the taint away, or shut the node down"
	backAgain   = "the node is Ready again, as before it was lost, and no volume was released: the fence is withdrawn"
	offAgain    = "fencing is switched off for " + rbd + " of a: the fence is withdrawn"
)

func (s *story) back() {
	s.pass(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged = true, s.Now
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
}

// notFenced until all is taken back, each step as csi-addons answers.
func (s *story) takesBack() {
	s.Helper()
	for range 4 {
		for _, n := range s.Fences {
			if !n.Unfenced && !n.Deleting {
				s.Fatalf("%s shuts the node out", n.Name)
			}
		}
		s.answer()
	}
	s.wantObjects()
	if len(s.Status.Fences) > 0 {
		s.Fatalf("on record is still %+v", s.Status.Fences)
	}
}

// What the API server did not take at first must not be made when the node is well.
func TestRecordedFenceIsWithdrawnFromReadyNode(t *testing.T) {
	for name, how := range map[string]func(*story){
		"not made yet":   func(s *story) { s.Fences = nil },
		"not answered":   func(*story) {},
		"done, not seen": func(s *story) { s.csi() },
		"deleted":        func(s *story) { s.change(s.Fences[0].Name, func(n *NetworkFence) { n.Deleting = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			s := askedOnly(t)
			how(s)
			s.back()
			s.taint(false).look()
			s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, backAgain)
			s.wantHeld(false) // nothing is lost, and nothing was taken by force
			s.takesBack()
			s.wantHealthy()
			s.wantHeld(false)
		})
	}
}

// A leader that hung all the while has recorded nothing since, and asks for it now.
func TestLateFenceOfHungLeaderIsWithdrawn(t *testing.T) {
	s := askedOnly(t)
	late := s.Fences[0]
	s.back()
	s.taint(false).look()
	s.takesBack()
	s.wantHealthy()
	s.Fences = []NetworkFence{late}
	s.answer()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "a NetworkFence of an incident that is over shuts the node out: unfencing the node")
	s.takesBack()
	s.wantHealthy()
	// Where the record was lost, it is unknown what was released for it.
	s.Status.Ended, s.Fences = nil, []NetworkFence{late}
	s.answer()
	s.wantObjects(fencedOf1)
	// It is remembered for this boot, and not for ever.
	s.Fences = nil
	for n := range 2 * maxEnded {
		s.Status.Ended = append(s.Status.Ended, string(rune('a'+n)))
	}
	s.look()
	if got := s.Status.Ended; len(got) != maxEnded || got[maxEnded-1] != string(rune('a'+2*maxEnded-1)) {
		t.Fatalf("remembered are %q", got)
	}
	s.boot("boot-2").look()
	if len(s.Status.Ended) > 0 {
		t.Fatalf("after a boot, remembered are %q", s.Status.Ended)
	}
}

// The taint was the operator's matter, not what runs on the node.
func TestOverriddenTaintKeepsGracePeriod(t *testing.T) {
	for name, asked := range map[string]bool{"lost": false, "asked for": true} {
		t.Run(name, func(t *testing.T) {
			s := lostStory(t)
			s.Node.OutOfService = asked
			s.look()
			s.override(GateTaint)
			s.Holding = nil // taken by force
			s.back()
			s.taint(false).look()
			s.wantHeld(true)
		})
	}
}

func TestTaintedNodeThatReturnsIsNotFenced(t *testing.T) {
	s := askedOnly(t)
	s.Holding = nil // Kubernetes has taken it by force
	s.back()
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted)
	s.wantObjects(unfencedOf1)
	s.wantHeld(true)
	if r := RemoveTaint(s.Node, Record{Status: s.Status}); r != nil {
		t.Fatalf("its taint may not go: %s", r.Message)
	}
	s.takesBack()
	s.wantPhase(v1alpha1.NodeHealthy, ReasonTaintedButReady)
	s.wantHeld(true)
	s.taint(false).look()
	s.wantHeld(true) // what runs there is given the time to end
	s.pass(endsWithin).look()
	s.wantHealthy()
	s.wantHeld(false)
}

func TestDelayedWithdrawalIsReported(t *testing.T) {
	s := askedOnly(t)
	s.back()
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted)
	s.pass(unanswered + time.Second).look()
	s.want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted+" (waiting for NetworkFence "+s.Fences[0].Name+": "+noAnswer+")")
	s.csiFails("no leader").look()
	s.want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted+" ("+rbd+" of a: no leader)")
	s.pass(10 * time.Second).look()
	s.wantObjects(deletingOf1)
	s.answer()
	s.takesBack()
}

func TestOwnTaintIsRemovedFromReadyNode(t *testing.T) {
	s := askedOnly(t)
	s.Node.OwnTaint = true
	s.back()
	s.look()
	if !s.step.RemoveTaint {
		t.Fatalf("got %+v", s.step)
	}
}

// It is lost again before all is taken back.
func TestWithdrawnFenceIsRequestedAgain(t *testing.T) {
	for name, answered := range map[string]bool{"let in": true, "not answered": false} {
		t.Run(name, func(t *testing.T) {
			s := askedOnly(t)
			s.back()
			s.look()
			s.wantObjects(unfencedOf1)
			if answered {
				s.csi()
			}
			s.lose().look()
			s.wantHeld(true)
			s.wantObjects(deletingOf1)
			s.answer()
			s.wantObjects(fencedOf1)
			s.wantHeld(true)
			s.answer()
			s.wantDrained()
			s.wantHeld(false)
		})
	}
}

// Volumes may have been released: only a boot is sure to end what runs there.
func TestFenceThatReleasedVolumesIsNotWithdrawn(t *testing.T) {
	for name, how := range map[string]func(*story){
		"it stood once": func(s *story) {
			s.answer()
			s.wantHeld(false)
			s.change(s.Fences[0].Name, func(n *NetworkFence) { n.Deleting = true })
			s.look()
			s.csi()
		},
		"an operator let them go": func(s *story) {
			s.override(GateAttach).look()
			s.wantHeld(false)
		},
		"an operator had let them go": func(s *story) {
			s.override(GateAttach).look()
			s.Override = Override{}
		},
	} {
		for _, tainted := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				s := askedOnly(t)
				how(s)
				s.back()
				s.Node.OutOfService = tainted
				s.look()
				s.answer()
				s.want(v1alpha1.NodeFenced, ReasonNotRebooted, "the node is Ready again but has not booted since it was lost: it still has its old mounts; reboot it")
				s.wantObjects(fencedOf1)
				if RemoveTaint(s.Node, Record{Name: "node-1", Status: s.Status, Override: s.Override}) == nil {
					t.Fatal("its taint may go")
				}
			})
		}
	}
}

// What an earlier boot was fenced for waits for its own end.
func TestEarlierIncidentStaysBlocked(t *testing.T) {
	for name, tainted := range map[string]bool{"tainted": true, "untainted": false} {
		t.Run(name, func(t *testing.T) {
			s := fenced(t)
			s.boot("boot-2").look()
			s.lose().look()
			s.wantObjects(fencedOf1, fencedOf1)
			s.back()
			s.Node.OutOfService = tainted
			s.look()
			s.wantObjects(fencedOf1, deletingOf1)
			s.answer()
			s.wantObjects(fencedOf1)
			s.taint(false).look()
			s.pass(time.Minute).look()
			s.takesBack()
			s.wantHealthy()
		})
	}
}

func switchedOff(s *story, mode Mode) {
	storages := s.Policy.Storages
	s.Policy.Storages = func(driver string) (StoragePolicy, bool) {
		if p, known := storages(driver); driver != rbd {
			return p, known
		}
		return StoragePolicy{Mode: mode}, true
	}
}

func TestSwitchingOffWithdrawsUnconfirmedFence(t *testing.T) {
	for name, c := range map[string]struct {
		mode Mode
		how  func(*story)
	}{
		"off":                 {ModeOff, func(*story) {}},
		"off, and it failed":  {ModeOff, func(s *story) { s.csiFails("no leader"); s.look() }},
		"off, before it made": {ModeOff, func(s *story) { s.Fences = nil }},
		"guard only":          {ModeGuard, func(*story) {}},
	} {
		t.Run(name, func(t *testing.T) {
			s := askedOnly(t)
			c.how(s)
			switchedOff(s, c.mode)
			s.look()
			s.wantPhase(v1alpha1.NodeFencing, ReasonSwitchedOff)
			s.wantObjects(unfencedOf1)
			s.wantHeld(c.mode == ModeGuard)
			s.takesBack()
			s.wantHeld(c.mode == ModeGuard)
			if c.mode == ModeOff {
				s.want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
			} else if s.Status.Phase != v1alpha1.NodeFencing || s.Status.Reason != ReasonGuardOnly {
				t.Fatalf("it is %s: %s", s.Status.Phase, s.Status.Message)
			}
			s.Policy = allFenced()
			s.look()
			s.answer()
			s.wantDrained()
		})
	}
}

// A fence of this node that stands keeps the same address out: what is switched off
// waits for its end.
func TestSwitchingOffKeepsOtherFence(t *testing.T) {
	s := healthy(t)
	s.loseWith(cephFS, "a", "10.0.0.1/32")
	s.change(s.Fences[1].Name, func(n *NetworkFence) { n.Result, n.Message = resultSucceeded, fencedMessage })
	s.look()
	fencedOfFS, unfencedOfFS := "Fenced [10.0.0.1/32] fence-"+cephFS, "Unfenced [10.0.0.1/32] fence-"+cephFS
	s.wantObjects(fencedOf1, fencedOfFS)
	switchedOff(s, ModeOff)
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonSwitchedOff, offAgain)
	s.wantObjects(deletingOf1, fencedOfFS)
	s.answer()
	s.wantObjects(fencedOfFS)
	s.want(v1alpha1.NodeFencing, ReasonSwitchedOff, offAgain)
	s.bootUntainted("boot-2")
	s.wantObjects(unfencedOfFS, unfencedOf1)
	s.takesBack()
	s.wantHealthy()
}

// A fence that stands is kept while its storage is switched off: it may have let volumes go.
func TestSwitchingOffKeepsConfirmedFence(t *testing.T) {
	s := fenced(t)
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
	s.look()
	s.wantDrained()
	s.change(s.Fences[0].Name, func(n *NetworkFence) { n.Deleting = true })
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonFencing, "waiting for NetworkFence "+s.Fences[0].Name)
	s.answer()
	s.wantObjects(fencedOf1)
}

// Two nodes behind one address that are both to be unfenced do not wait for each other.
func TestWithdrawnNodesDoNotWaitForEachOther(t *testing.T) {
	s := askedOnly(t)
	s.back()
	theirs := v1alpha1.Fence{Name: "fairlead-node-2", Incident: "x", Driver: rbd, ClusterID: "a", CIDRs: []string{"10.0.0.1/32"}, State: v1alpha1.FenceRequested}
	s.Fences = append(s.Fences, NetworkFence{Name: theirs.Name, CIDRs: theirs.CIDRs})
	node2 := Other{Node: Node{Name: "node-2", Exists: true, OutOfService: true}, Status: v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFencing, Incident: "x", Fences: []v1alpha1.Fence{theirs}}}
	s.Others = []Other{node2}
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonTaintedButReady, backTainted+" (its address 10.0.0.1/32 also keeps out node node-2, which may not be readmitted yet; if that machine is known to be off: kubectl annotate --overwrite nodefence node-2 'fairlead.io/override-gate=unfence: <why>')")
	s.wantObjects(deletingOf1, "Fenced [10.0.0.1/32] ") // or it would be done yet, to a node that works
	if len(s.unfenced) > 0 || s.Status.Fences[0].State != v1alpha1.FenceUnfencing {
		t.Fatalf("unfenced %v, record %+v", s.unfenced, s.Status.Fences)
	}
	s.Others = []Other{{Node: node2.Node, Status: *node2.Status.DeepCopy()}}
	s.Others[0].Status.Fences[0].State = v1alpha1.FenceUnfencing
	s.answer()
	s.wantObjects("Fenced [10.0.0.1/32] ", unfencedOf1)
}

// Three nodes share an address: the two that are back wait for the third, not for each other.
func TestReleasedNodesDoNotWaitForEachOther(t *testing.T) {
	s := fenced(t)
	s.boot("boot-2")
	s.Node.OutOfService = false
	s.pass(time.Minute)
	behind := func(name, state string, phase v1alpha1.NodeFencePhase) Other {
		theirs := v1alpha1.Fence{Name: "of-" + name, Incident: "x", Driver: rbd, ClusterID: "b", CIDRs: []string{"10.0.0.1/32"}, State: state}
		return Other{Node: Node{Name: name}, Status: v1alpha1.NodeFenceStatus{Phase: phase, Incident: "x", Fences: []v1alpha1.Fence{theirs}}}
	}
	released := behind("node-2", v1alpha1.FenceUnfencing, v1alpha1.NodeUnfencing)
	s.Others = []Other{released, behind("node-3", v1alpha1.FenceFenced, v1alpha1.NodeDrained)}
	s.look()
	s.wantReason(ReasonSharedAddress)
	if !strings.Contains(s.Status.Message, "node-3") {
		t.Fatalf("it waits for another: %s", s.Status.Message)
	}
	s.answer()
	s.wantObjects()
	s.Others = s.Others[:1]
	s.look()
	s.wantObjects(unfencedOf1)
	s.takesBack()
	s.wantHealthy()
}

// Lost again while its address is shared: what was released is wanted again, and nothing becomes Fenced from Unfenced.
func TestNodeThatWaitedForASharedAddressIsFencedAgain(t *testing.T) {
	s := fenced(t)
	s.bootUntainted("boot-2")
	s.wantObjects(unfencedOf1)
	theirs := v1alpha1.Fence{Name: "theirs", Incident: "x", Driver: rbd, ClusterID: "a", CIDRs: []string{"10.0.0.1/32"}, State: v1alpha1.FenceRequested, LetGo: true}
	s.Others = []Other{{Node: Node{Name: "node-2"}, Status: v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeFencing, Incident: "x", Fences: []v1alpha1.Fence{theirs}}}}
	s.look()
	s.wantReason(ReasonSharedAddress)
	s.wantObjects(deletingOf1)
	s.loseTainted()
	s.wantHeld(true)
	s.wantObjects(deletingOf1) // asked for only when it is gone
	s.answer()
	s.wantObjects(fencedOf1)
	s.answer()
	s.wantHeld(false)
}

// What was asked for an earlier boot would block a machine that was not given up.
func TestUnansweredFenceIsWithdrawnWhenNodeIsLostAgain(t *testing.T) {
	s := askedOnly(t)
	s.Node.Ready, s.Node.Machine.BootID = true, "boot-2"
	s.Status = Next(s.Facts).Status // recorded, and nothing done yet
	s.wantObjects(fencedOf1)
	s.lose()
	s.taint(false).look()
	if s.Status.Phase != v1alpha1.NodeLost {
		t.Fatalf("it is %s: %s", s.Status.Phase, s.Status.Message)
	}
	s.wantObjects(deletingOf1)
}
