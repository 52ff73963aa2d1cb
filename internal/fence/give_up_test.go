package fence

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

func machineOfAddress(uuid, address string) Other {
	return Other{Record: "node-7", Node: Node{
		Name: "node-7", Exists: true, Ready: true, Machine: v1alpha1.MachineIdentity{SystemUUID: uuid, BootID: "boot-7"}, Addresses: []netip.Addr{addr(address)},
	}}
}

// goneMachine is fenced, nothing is left on it, and its Node is deleted.
func goneMachine(t *testing.T, g GiveUp) *story {
	s := fenced(t)
	s.Policy.GiveUp = g
	s.deleteNode().look()
	s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)
	return s
}

func TestGoneMachineIsGivenUpByConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		when    GiveUp
		happens func(*story)
		because string // empty: it stays fenced
	}{
		"an address is taken": {GiveUp{AddressTaken: true}, func(s *story) { s.Others = []Other{machineOfAddress("machine-7", "10.0.0.1")} }, "its address 10.0.0.1 is one of node node-7 now"},
		"the taker is known by its record": {GiveUp{AddressTaken: true}, func(s *story) {
			o := machineOfAddress("machine-7", "192.168.1.7")
			o.Status.Identities = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
			s.Others = []Other{o}
		}, "its address 10.0.0.1 is one of node node-7 now"},
		"it is long ago": {GiveUp{After: time.Hour}, func(s *story) { s.pass(time.Hour) }, "it was lost more than 1h0m0s ago"},

		"an address is taken, and that is no proof": {GiveUp{After: time.Hour}, func(s *story) { s.Others = []Other{machineOfAddress("machine-7", "10.0.0.1")} }, ""},
		"it is long ago, and that is no proof":      {GiveUp{AddressTaken: true}, func(s *story) { s.pass(1000 * time.Hour) }, ""},
		"it is not so long ago":                     {GiveUp{After: time.Hour}, func(s *story) { s.pass(59 * time.Minute) }, ""},
		"the taker is the machine itself":           {GiveUp{AddressTaken: true}, func(s *story) { s.Others = []Other{machineOfAddress("machine-1", "10.0.0.1")} }, ""},
		"the taker may be the machine itself":       {GiveUp{AddressTaken: true}, func(s *story) { s.Others = []Other{machineOfAddress("", "10.0.0.1")} }, ""},
		"the taker is not Ready": {GiveUp{AddressTaken: true}, func(s *story) {
			s.Others = []Other{machineOfAddress("machine-7", "10.0.0.1")}
			s.Others[0].Node.Ready = false
		}, ""},
		"the taker had the address once": {GiveUp{AddressTaken: true}, func(s *story) {
			o := machineOfAddress("machine-7", "192.168.1.7")
			o.Status.Identities = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
			o.Status.Identities[0].Addresses[0].Earlier = true
			s.Others = []Other{o}
		}, ""},
		"the machine had the address once": {GiveUp{AddressTaken: true}, func(s *story) {
			s.Status.Identities[0].Addresses[0].Earlier = true
			s.Others = []Other{machineOfAddress("machine-7", "10.0.0.1")}
		}, ""},
		"pods are left on it": {GiveUp{After: time.Hour}, func(s *story) { s.Left = []string{"pod default/db"}; s.pass(time.Hour) }, ""},
		"the fence does not stand": {GiveUp{After: time.Hour}, func(s *story) {
			s.Fences[0].Result, s.Fences[0].Message = resultFailed, "the mons are away"
			s.look()
			s.pass(time.Hour)
		}, ""},
		"its Node is there": {GiveUp{After: time.Hour}, func(s *story) {
			s.Node = readyNamed("node-1", "boot-1")
			s.Node.Ready, s.Node.OutOfService = false, true
			s.pass(time.Hour)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := goneMachine(t, c.when)
			c.happens(s)
			s.look()
			if c.because == "" {
				if s.wantReasonNot(ReasonOverridden); len(s.unfenced) > 0 || s.Status.Phase == v1alpha1.NodeUnfencing {
					t.Fatalf("it was unfenced: %+v", s.Status)
				}
				return
			}
			s.want(v1alpha1.NodeUnfencing, ReasonOverridden, `unfencing the node: fencing.giveUp says "`+c.because+`"`)
			s.wantObjects(unfencedOf1)
			if len(s.Status.Volumes) > 0 {
				t.Errorf("it holds %v", VolumeNames(s.Status.Volumes))
			}
			s.answers(2)
			s.wantObjects()
			s.wantForgotten()
		})
	}
}

func (s *story) wantReasonNot(reason string) {
	s.Helper()
	if s.Status.Reason == reason {
		s.Fatalf("the node is %s (%s): %s", s.Status.Phase, reason, s.Status.Message)
	}
}

// Kubernetes deletes a Node that has just been unfenced: that is a new loss, and no word that the machine is off.
func TestMachineDeletedWhileLetInIsNotGivenUp(t *testing.T) {
	s := fenced(t)
	s.Policy.GiveUp = GiveUp{AddressTaken: true}
	s.bootUntainted("boot-2")
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")
	s.Node = Node{Name: "node-1"}
	s.Others = []Other{machineOfAddress("machine-7", "10.0.0.1")}
	s.look()
	if s.Status.Phase == v1alpha1.NodeUnfencing {
		t.Errorf("it is given up: %s", s.Status.Message)
	}
}

func TestLookIsDueWhenMachineMayBeGivenUp(t *testing.T) {
	s := goneMachine(t, GiveUp{After: time.Hour})
	if due := s.Status.LostSince.Add(time.Hour).Sub(s.Now); s.step.After != due {
		t.Errorf("the next look is after %s, and should be after %s", s.step.After, due)
	}
}

// A second fenced machine has the address too, so unfencing waits; the first one's volumes do not.
func TestVolumesOfMachineGivenUpAreFreeAtOnce(t *testing.T) {
	s := goneMachine(t, GiveUp{After: time.Hour})
	s.Others = []Other{{Node: Node{Name: "node-2"}, Record: "node-2", Status: v1alpha1.NodeFenceStatus{
		Phase: v1alpha1.NodeDrained, Incident: "i2", Fences: []v1alpha1.Fence{{Name: "theirs", Incident: "i2", CIDRs: []string{"10.0.0.1/32"}, State: v1alpha1.FenceFenced, LetGo: true}},
	}}}
	s.pass(time.Hour).look()
	if s.wantReason(ReasonSharedAddress); len(s.Status.Volumes) > 0 || !strings.Contains(s.Status.Message, "node-2") {
		t.Errorf("got %+v", s.Status)
	}
}

// The node that has the address now is not Ready for a moment, as young nodes are.
func TestGivingUpThatHasBegunIsFinished(t *testing.T) {
	s := goneMachine(t, GiveUp{AddressTaken: true})
	s.Others = []Other{machineOfAddress("machine-7", "10.0.0.1")}
	s.look()
	s.wantObjects(unfencedOf1)
	s.Others[0].Node.Ready = false
	s.look()
	s.wantObjects(unfencedOf1)
	s.answers(2)
	s.wantObjects()
	s.wantForgotten()
}
