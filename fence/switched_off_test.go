package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Weeks later somebody else may have its address, and its volumes be anywhere.
func TestAMachineThatWentWhileItWasSwitchedOffIsForgotten(t *testing.T) {
	s := lostStory(t)
	off := with(s.Policy, StoragePolicy{Mode: ModeOff})
	on := s.Policy
	s.Policy = off
	s.look()
	s.want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
	s.Policy = on
	s.look()
	s.wantHeld(true) // its object is there: it may come back with what it had
	s.Policy = off
	s.look()
	s.Node, s.Holding = Node{Name: "node-1"}, nil
	s.look()
	if len(s.Status.Volumes) > 0 || !s.step.Forget {
		t.Fatalf("it is remembered with %v", s.Status.Volumes)
	}
	s.Policy = on
	s.pass(30 * 24 * time.Hour)
	s.look()
	s.wantObjects()
	if !s.step.Forget {
		t.Fatalf("it is %s (%s)", s.Status.Phase, s.Status.Reason)
	}
}

// What is fenced for a volume is taken back by what is on record of it.
func TestWhatWasFencedIsRememberedWhileItIsSwitchedOff(t *testing.T) {
	s := fenced(t)
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
	s.Node, s.Holding = Node{Name: "node-1"}, nil
	s.look()
	if len(s.Status.Volumes) != 1 || len(s.Status.Fences) != 1 || s.step.Forget {
		t.Fatalf("on record are %v and %v", s.Status.Volumes, s.Status.Fences)
	}
	s.wantObjects(fencedOf1)
}

// refusedAndReplaced is a machine whose fence is refused, and another that works and has its name.
func refusedAndReplaced(t *testing.T) *story {
	s := lostStory(t)
	s.Node.OutOfService = true
	s.Status.Identities[0].Class = "" // nobody can be asked to fence it
	s.look()
	s.Holding = nil
	s.take("machine-2", "192.168.1.2")
	s.look()
	s.Holding = []v1alpha1.HeldVolume{held("pv-9", rbd, "a")}
	s.look()
	s.wantReason(ReasonNoCredentials)
	if own, successor := heldBy(s.Status.Volumes, "pv-9"); own || !successor || len(s.Fences) > 0 {
		t.Fatalf("on record are %v and %v", s.Status.Volumes, s.Status.Fences)
	}
	return s
}

// Nothing of the first is on record any more: it is the other's record, by which that can be fenced.
func TestTheRecordOfAMachineThatIsForgottenIsTheOnesThatHasItsName(t *testing.T) {
	for name, again := range map[string]func(*story){
		"switched on again": func(*story) {},
		"not Ready when it is switched off": func(s *story) {
			s.Node.Ready, s.Node.ReadyChanged = true, s.Now
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := refusedAndReplaced(t)
			on := s.Policy
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
			s.Node.Ready = name == "switched on again"
			s.look()
			s.Policy = on
			s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
			s.look()
			s.wantObjects() // not by the address of the other
			again(s)
			for range 3 { // what was lost is given time to end
				s.look()
				s.pass(endsWithin)
			}
			s.look()
			s.want(v1alpha1.NodeHealthy, ReasonReady, "")
			if own, successor := heldBy(s.Status.Volumes, "pv-9"); !own || successor || s.Status.Addresses != "10.0.0.2/32" || s.Status.Node.SystemUUID != "machine-2" {
				t.Fatalf("on record are %+v", s.Status)
			}
		})
	}
}

// A third machine has the name of two that are lost: the second is lost still.
func TestALostSuccessorOfOneThatIsForgottenIsHeld(t *testing.T) {
	s := refusedAndReplaced(t)
	s.Status.Volumes = ownVolumes(s.Status.Volumes)
	s.Holding[0].Driver = cephFS // which is not switched off
	s.look()
	s.Holding = nil
	s.take("machine-3", "192.168.1.3")
	s.Policy.Storages = func(driver string) (StoragePolicy, bool) { return StoragePolicy{Mode: ModeFence}, driver == cephFS }
	s.pass(DefaultReadyFor)
	s.look()
	s.wantReason(ReasonSuccessorLost)
	if s.Status.Phase != v1alpha1.NodeReturned || s.Status.Node.SystemUUID != "machine-3" {
		t.Fatalf("it is %s, of %v", s.Status.Phase, s.Status.Node)
	}
	s.Policy = allFenced()
	s.wantGate(ReasonSuccessorLost)
}

// So is what came with a machine that took the name of one that is fenced, and went meanwhile.
func TestWhatASuccessorHadThatWentWhileItWasSwitchedOffIsForgotten(t *testing.T) {
	for name, gone := range map[string]func(*story){
		"its object is deleted":        func(s *story) { s.Node = Node{Name: "node-1"} },
		"a third machine has the name": func(s *story) { s.take("machine-3", "192.168.1.3") },
	} {
		t.Run(name, func(t *testing.T) {
			s := replacedStory(t)
			on := s.Policy
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
			gone(s)
			s.look() // its attachment is left, which names it
			s.Holding = nil
			s.look()
			s.Policy = on
			s.look()
			s.wantGate("")
			if len(s.step.successors) > 0 || len(s.Fences) != 1 || len(ownVolumes(s.Status.Volumes)) != 1 {
				t.Fatalf("on record are %+v", s.Status.Volumes)
			}
		})
	}
	// One that is there is still who it is.
	s := replacedStory(t)
	on := s.Policy
	s.lose()
	s.look()
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
	s.look()
	s.Policy = on
	s.look()
	s.wantGate(ReasonSuccessorLost)
}
