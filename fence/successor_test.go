package fence

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// replacedStory is a fenced machine whose name another one has taken, which has got a
// volume of the same storage since.
func replacedStory(t *testing.T) *story {
	s := fenced(t)
	s.Holding = nil
	s.take("machine-2", "192.168.1.2")
	s.look()
	s.want(v1alpha1.NodeDrained, ReasonReplaced, stayingFenced)
	s.Holding = []v1alpha1.HeldVolume{held("pv-9", rbd, "a")}
	s.look()
	s.want(v1alpha1.NodeDrained, ReasonReplaced, stayingFenced)
	return s
}

// take the node's name, as another machine.
func (s *story) take(machine, address string) {
	s.pass(time.Minute)
	s.Node = readyNamed("node-1", "boot-of-"+machine)
	s.Node.Machine.UID, s.Node.Machine.SystemUUID = "uid-of-"+s.Node.Machine.UID, machine
	s.Node.ReadyChanged, s.Node.Addresses[0] = s.Now, addr(address)
}

// gate asks for the volume that the successor has got, on a node.
func (s *story) gate(node string, inUse bool) *Held {
	own, successor := heldBy(append(slices.Clone(s.Holding), s.Status.Volumes...), "pv-9")
	if !own && !successor && !inUse {
		return nil // nobody is asked
	}
	v := pv("pv-9", rbd, "h-9", "a", "ReadWriteOnce")
	return Attach(v, node, []Holder{{Node: s.Node, Status: s.Status, Override: s.Override, InUse: inUse}}, s.Policy)
}

func (s *story) wantGate(reason string) {
	s.Helper()
	s.wantGateOn(false, reason)
}

func (s *story) wantGateOn(inUse bool, reason string) {
	s.Helper()
	got := ""
	if held := s.gate("node-2", inUse); held != nil {
		got = held.Reason
	}
	if got != reason {
		s.Fatalf("in phase %s, the gate says %q (in use: %t), and should say %q", s.Status.Phase, got, inUse, reason)
	}
}

const lostSuccessor = "another machine that has had the node's name since is lost too, and can not be fenced, since the addresses on record are not its own; its volumes are held (pv-9). When it is off for certain: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=attach: <why>'; " + stayingFenced

// The fence of the machine before counted for the one after it: a volume that this
// one wrote to was attached elsewhere.
func TestAFenceIsNotThatOfTheMachineThatTookTheName(t *testing.T) {
	for name, lost := range map[string]func(*story){
		"its object is deleted, and its attachment gone": func(s *story) { s.Node, s.Holding = Node{Name: "node-1"}, nil },
		"its object is deleted":                          func(s *story) { s.Node = Node{Name: "node-1"} },
		"it is not Ready":                                func(s *story) { s.lose() },
		"it is tainted":                                  func(s *story) { s.lose(); s.Node.OutOfService, s.Holding = true, nil },
		"a third machine has the name":                   func(s *story) { s.Holding = nil; s.take("machine-3", "192.168.1.3") },
		"the first one is back":                          func(s *story) { s.Holding = nil; s.Node = readyNamed("node-1", "boot-2") },
	} {
		t.Run(name, func(t *testing.T) {
			s := replacedStory(t)
			s.wantGate("") // it is healthy, and has let go
			lost(s)
			s.wantGate(ReasonSuccessorLost) // as soon as it is lost
			s.look()
			s.wantGate(ReasonSuccessorLost)
			s.wantHeld(false) // the fence holds for what it was made for
			s.pass(240 * time.Hour)
			s.look()
			s.wantGate(ReasonSuccessorLost)
			if s.step.Forget || len(s.Fences) != 1 || s.Fences[0].Unfenced {
				t.Fatalf("got %+v", s.step)
			}
			if s.Status.Phase == v1alpha1.NodeReturned {
				s.wantReason(ReasonSuccessorLost)
				return
			}
			s.want(v1alpha1.NodeDrained, ReasonSuccessorLost, lostSuccessor)
			if !s.step.Warning {
				t.Error("nobody is told")
			}
		})
	}
}

func (s *story) wantReason(reason string) {
	s.Helper()
	if s.Status.Reason != reason {
		s.Fatalf("the node is %s (%s): %s", s.Status.Phase, s.Status.Reason, s.Status.Message)
	}
}

// Neither is asked for by the other's record: it would wait for an address for ever.
func TestWhatASuccessorHasDoesNotDisturbTheRecord(t *testing.T) {
	s := replacedStory(t)
	s.Holding = append(s.Holding, held("pv-8", cephFS, "a"))
	s.look()
	s.want(v1alpha1.NodeDrained, ReasonReplaced, stayingFenced)
	s.wantObjects(fencedOf1)
}

func TestWhatASuccessorLetsGoOf(t *testing.T) {
	back := func(s *story) {
		s.pass(time.Minute)
		s.Node.Ready, s.Node.ReadyChanged, s.Node.OutOfService, s.Holding = true, s.Now, false, nil
		s.look()
	}
	s := replacedStory(t)
	if held := s.gate("node-1", true); held != nil {
		t.Fatalf("held from itself: %+v", held)
	}
	s.Holding = nil
	s.look()
	if own, successor := heldBy(s.Status.Volumes, "pv-9"); own || successor {
		t.Fatalf("got %+v", s.Status.Volumes)
	}
	s.wantGate("")

	// It was detached by force meanwhile, and it has not booted.
	s = replacedStory(t)
	s.lose()
	s.look()
	s.wantGate(ReasonSuccessorLost)
	back(s)
	s.wantGate(ReasonStillMounted)
	s.pass(endsWithin)
	s.look()
	s.wantGate("")

	s = replacedStory(t)
	s.lose()
	s.look()
	s.Node.Machine.BootID = "boot-of-machine-2-2"
	s.wantGate("")
	back(s)
	s.wantGate("")

	// Its object is made anew in the same boot, and nobody has seen it go.
	s = replacedStory(t)
	s.Node.Machine.UID, s.Holding = "uid-of-another-object", nil
	s.look()
	s.wantGate(ReasonStillMounted)
}

// What an operator has said of the first machine is not said of the second.
func TestAnOverrideIsNotOfTheMachineThatTookTheName(t *testing.T) {
	s := replacedStory(t)
	s.override(GateAttach)
	s.lose()
	s.Node = Node{Name: "node-1"}
	s.Holding = nil
	s.wantGate(ReasonSuccessorLost)
	s.look()
	s.wantGate(ReasonSuccessorLost)
	s.pass(time.Minute)
	s.override(GateAttach)
	s.wantGate("")
	s.look()
	s.wantGate("")
	s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)
}

// What a lost successor has of a driver that is switched off keeps nobody out.
func TestASuccessorsVolumesThatAreSwitchedOffKeepNoNodeOut(t *testing.T) {
	s := replacedStory(t)
	s.lose()
	s.look()
	s.Holding, s.Policy = nil, with(s.Policy, StoragePolicy{Mode: ModeOff})
	s.look()
	s.want(v1alpha1.NodeDrained, ReasonReplaced, stayingFenced)
	s.wantGate("")
	s.Policy = allFenced() // it was not long, and nothing is forgotten
	s.look()
	s.wantGate(ReasonSuccessorLost)
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
	s.Node = readyNamed("node-1", "boot-2")
	for range 3 {
		s.look()
		s.csi()
	}
	s.look()
	s.want(v1alpha1.NodeHealthy, ReasonReady, "")

	// So that of one driver does not of another.
	s = replacedStory(t)
	s.Holding = append(s.Holding, held("pv-8", cephFS, "a"))
	s.look()
	s.lose()
	s.look()
	s.Policy.Storages = func(driver string) (StoragePolicy, bool) { return StoragePolicy{Mode: ModeFence}, driver != cephFS }
	s.Holding, s.Node = nil, readyNamed("node-1", "boot-2")
	s.look()
	s.wantReason(ReasonSuccessorLost)
	s.wantGate(ReasonSuccessorLost)
	if !strings.Contains(s.Status.Message, "(pv-9)") {
		t.Fatalf("it waits for more: %s", s.Status.Message)
	}
}

// The one that was lost first is given up; the other is lost still, and it is its record then.
func TestTheRecordPassesToTheSuccessor(t *testing.T) {
	for name, gone := range map[string]bool{"not Ready": false, "deleted": true} {
		s := replacedStory(t)
		s.lose()
		if s.Holding = nil; gone {
			s.Node = Node{Name: "node-1"}
		}
		s.look()
		first := s.Status.Incident
		s.letInByOverride()
		if s.wantGate(s.Status.Reason); s.Status.Incident == first || s.Status.Node.SystemUUID != "machine-2" {
			t.Fatalf("%s: got %+v", name, s.Status)
		}
		if gone {
			s.wantReason(ReasonNoIdentity)
		} else {
			s.wantReason(ReasonNotReady)
		}
		if len(s.Status.Identities) != 0 || len(s.Fences) != 0 {
			t.Fatalf("%s: fenced by the addresses of the other: %+v", name, s.Status)
		}
	}
	// One that is well is healthy then.
	s := replacedStory(t)
	s.letInByOverride()
	s.want(v1alpha1.NodeHealthy, ReasonReady, "")
	if own, successor := heldBy(s.Status.Volumes, "pv-9"); !own || successor || len(s.Status.Volumes) != 1 {
		t.Fatalf("got %+v", s.Status.Volumes)
	}
}

func (s *story) letInByOverride() {
	s.Helper()
	s.pass(time.Minute)
	s.override(GateUnfence)
	for range 3 {
		s.look()
		s.csi()
	}
	s.look()
}

// Nobody has looked between the loss of the one and the coming of the other.
func TestWhatIsNotOnRecordMayBeOfEither(t *testing.T) {
	s := replacedStory(t)
	s.Status.Volumes = ownVolumes(s.Status.Volumes)
	s.lose()
	if held := s.gate("node-2", false); held == nil || !strings.Contains(held.Message, "the machine that was node node-1 before") {
		t.Fatalf("got %+v", held)
	}
	s.Node = Node{Name: "node-1"}
	if s.gate("node-2", false) == nil {
		t.Fatal("let go")
	}
	s.look()
	s.wantGate(ReasonSuccessorLost)
	s.want(v1alpha1.NodeDrained, ReasonSuccessorLost, lostSuccessor)

	s = healthy(t)
	s.take("machine-2", "192.168.1.2")
	s.Holding = []v1alpha1.HeldVolume{held("pv-9", rbd, "a")}
	s.look()
	if own, successor := heldBy(s.Status.Volumes, "pv-9"); !own || !successor {
		t.Fatalf("got %+v", s.Status.Volumes)
	}
}

// Without a UUID to tell by, another machine was taken for a boot of the one that was fenced.
func TestWithoutUUIDAnotherNodeObjectIsAnotherMachine(t *testing.T) {
	for name, test := range map[string]struct {
		was, is, uid, boot string
		other              bool
	}{
		"none is known": {uid: "uid-2", boot: "boot-2", other: true},
		"none is known of the one that was there": {is: "machine-1", uid: "uid-2", boot: "boot-2", other: true},
		"none is known of the one that is there":  {was: "machine-1", uid: "uid-2", boot: "boot-2", other: true},
		"the same Node":                           {uid: "uid-1", boot: "boot-2"},
		"the same boot":                           {uid: "uid-2", boot: "boot-1"},
		"no boot":                                 {uid: "uid-2", other: true},
		"the same machine":                        {was: "machine-1", is: "machine-1", uid: "uid-2", boot: "boot-2"},
	} {
		s := fenced(t)
		s.Status.Node.SystemUUID = test.was
		s.boot(test.boot)
		s.Node.Machine.SystemUUID, s.Node.Machine.UID, s.Node.OutOfService = test.is, types.UID(test.uid), false
		s.Ledger[0].Addresses[0].CIDR = "10.0.0.2/32"
		s.pass(time.Hour)
		s.look()
		if stays := s.Status.Reason == ReasonReplaced; stays != test.other || test.other && s.Fences[0].Unfenced {
			t.Errorf("%s: %s (%s): %s", name, s.Status.Phase, s.Status.Reason, s.Status.Message)
		}
	}
}

// It may be the same machine, which works: that is not fenced by the address of before.
func TestWithoutUUIDNobodyIsFencedWhoMayBeTheSame(t *testing.T) {
	s := healthy(t)
	s.Node.Machine = v1alpha1.MachineIdentity{UID: "uid-2", BootID: "boot-2"}
	s.Ledger = nil
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonAddressInUse, "not fenced: "+rbd+" of a: 10.0.0.1 may belong to the machine that has the node's name now: that may be the same one, since there is no system UUID to tell by, and it is not known by which address the storage knows it")
	s.wantHeld(true)
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.2/32")}
	s.look()
	s.wantObjects(fencedOf1)
}

// The first had only waited for the volume that the other uses, and that was taken from it by force.
func TestWhatASuccessorHasDoesNotWaitAsTheFirstDid(t *testing.T) {
	s := replacedStory(t)
	waited := held("pv-9", rbd, "a")
	waited.Waiting = true
	s.Status.Volumes = append([]v1alpha1.HeldVolume{waited}, s.Status.Volumes...)
	s.Holding[0].Waiting, s.Holding[0].Detached = true, true
	s.look()
	for _, v := range s.Status.Volumes {
		if v.PersistentVolume == "pv-9" && v.Successor != nil && !v.Detached {
			t.Fatalf("on record is %+v", v)
		}
	}
}
