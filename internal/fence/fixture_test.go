package fence

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(t time.Time) *metav1.Time { m := metav1.NewTime(t); return &m }

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// allFenced is a configuration that protects the drivers of the tests.
func allFenced() Policy {
	return Policy{MaxAge: DefaultMaxAge, ReadyFor: DefaultReadyFor, Storages: func(driver string) (StoragePolicy, bool) {
		return StoragePolicy{Mode: ModeFence}, slices.Contains([]string{rbd, cephFS, other}, driver)
	}}
}

func with(p Policy, s StoragePolicy) Policy {
	p.Storages = func(string) (StoragePolicy, bool) { return s, true }
	return p
}

func readyNamed(name, boot string) Node {
	return Node{
		Name: name, Exists: true, Ready: true, ReadyChanged: noon.Add(-time.Hour), Addresses: []netip.Addr{addr("192.168.1.1")},
		Machine: v1alpha1.MachineIdentity{UID: "uid-1", BootID: boot, SystemUUID: "machine-1"},
	}
}

func identity(driver, clusterID string, cidrs ...string) v1alpha1.StorageIdentity {
	i := v1alpha1.StorageIdentity{Driver: driver, ClusterID: clusterID, Class: "fence-" + driver}
	for _, c := range cidrs {
		i.Addresses = append(i.Addresses, v1alpha1.ClientAddress{CIDR: c, Source: SourceCSIAddonsNode, LastSeen: metav1.NewTime(noon)})
	}
	return i
}

// story is one node, its record and its NetworkFences, told by a test.
type story struct {
	*testing.T
	Facts
	step Step
	// created, unfenced and deleted at the last look.
	created, unfenced, deleted []string
	// made objects so far.
	made int
}

// healthy is a node with a volume of RBD, whose ledger has been recorded.
func healthy(t *testing.T) *story {
	s := &story{T: t, Facts: Facts{
		Now: noon, Record: "node-1", Node: readyNamed("node-1", "boot-1"), Policy: allFenced(),
		Ledger:  []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")},
		Holding: []v1alpha1.HeldVolume{held("pv-1", rbd, "a")},
	}}
	s.look()
	s.wantHealthy()
	return s
}

// recordedLoss is that node, lost and on record as lost.
func recordedLoss(t *testing.T) *story {
	s := lostStory(t)
	s.look()
	return s
}

// lostStory is that node, lost a minute later.
func lostStory(t *testing.T) *story {
	s := healthy(t)
	s.lose()
	return s
}

// askedOnly is that node, out of service, and its fence not confirmed.
func askedOnly(t *testing.T) *story {
	s := healthy(t)
	s.loseTainted()
	return s
}

// fenced is that node, fenced.
func fenced(t *testing.T) *story {
	s := askedOnly(t)
	s.answer()
	s.wantDrained()
	return s
}

func (s *story) lose() *story {
	s.Now = s.Now.Add(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged = false, s.Now
	s.Ledger = nil
	return s
}

func (s *story) boot(id string) *story {
	s.Now = s.Now.Add(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged, s.Node.Machine.BootID = true, s.Now, id
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
	if len(s.Status.Fences) > 0 {
		s.look() // from here on its readiness counts
	}
	return s
}

// loseTainted: the node is lost, and an operator says so.
func (s *story) loseTainted() {
	s.Helper()
	s.lose()
	s.Node.OutOfService = true
	s.look()
}

// loseWith a volume of another storage identity.
func (s *story) loseWith(driver, clusterID, cidr string) {
	s.Helper()
	s.Ledger = append(s.Ledger, identity(driver, clusterID, cidr))
	s.Holding = append(s.Holding, held("pv-2", driver, clusterID))
	s.look()
	s.loseTainted()
}

// bootUntainted: the node has rebooted, and nothing but Fairlead keeps it out any more.
func (s *story) bootUntainted(id string) {
	s.Helper()
	s.boot(id)
	s.Node.OutOfService = false
	s.pass(time.Minute)
	s.look()
}

func (s *story) pass(d time.Duration) *story {
	s.Now = s.Now.Add(d)
	return s
}

// taint the node, or take its taint away.
func (s *story) taint(on bool) *story {
	s.Node.OutOfService = on
	return s
}

// deleteNode: the Node and what the cluster shows on it go.
func (s *story) deleteNode() *story {
	s.Node, s.Holding = Node{Name: "node-1"}, nil
	return s
}

// look until there is nothing to do, as the controller does: what is recorded
// first, then what follows from it.
func (s *story) look() {
	s.Helper()
	s.created, s.unfenced, s.deleted = nil, nil, nil
	for range 20 {
		s.step = Next(s.Facts)
		if !equality.Semantic.DeepEqual(s.step.Status, s.Status) {
			s.Status = s.step.Status
			if s.Override.Scope != Scope(s.Status) {
				s.Override = Override{} // it was of another incident
			}
			continue
		}
		for _, n := range s.step.Create {
			if _, there := s.object(n.Name); there {
				s.Fatalf("%s is there already", n.Name)
			}
			s.made++
			n.UID, n.ResourceVersion = types.UID(fmt.Sprint("uid-", s.made)), "1"
			s.Fences, s.created = append(s.Fences, n), append(s.created, n.Name)
		}
		for _, n := range s.step.Unfence {
			s.change(n.Name, func(n *NetworkFence) { n.Unfenced = true })
			s.unfenced = append(s.unfenced, n.Name)
		}
		for _, n := range s.step.Delete {
			s.change(n.Name, func(n *NetworkFence) { n.Deleting = true })
			s.deleted = append(s.deleted, n.Name)
		}
		if len(s.step.Create)+len(s.step.Unfence)+len(s.step.Delete) == 0 {
			return
		}
	}
	s.Fatalf("it goes on for ever, at %+v", s.step)
}

func (s *story) change(name string, how func(*NetworkFence)) {
	s.Helper()
	i := slices.IndexFunc(s.Fences, func(n NetworkFence) bool { return n.Name == name })
	if i < 0 {
		s.Fatalf("there is no %s", name)
	}
	s.Fences = slices.Clone(s.Fences)
	how(&s.Fences[i])
}

// csi is csi-addons having done all that it is asked for.
func (s *story) csi() {
	s.Fences = slices.DeleteFunc(slices.Clone(s.Fences), func(n NetworkFence) bool { return n.Deleting })
	for i := range s.Fences {
		s.Fences[i].Result, s.Fences[i].Message = resultSucceeded, fencedMessage
		if s.Fences[i].Unfenced {
			s.Fences[i].Message = unfencedMessage
		}
	}
}

// answer: csi-addons does what it is asked for, and Fairlead sees that.
func (s *story) answer() {
	s.Helper()
	s.csi()
	s.look()
}

// answers of csi-addons, one after the other.
func (s *story) answers(times int) {
	s.Helper()
	for range times {
		s.answer()
	}
}

// csiFails is the driver saying no.
func (s *story) csiFails(message string) *story {
	s.Fences = slices.DeleteFunc(slices.Clone(s.Fences), func(n NetworkFence) bool { return n.Deleting })
	for i := range s.Fences {
		s.Fences[i].Result, s.Fences[i].Message = resultFailed, message
	}
	return s
}

func (s *story) override(gate string) *story {
	s.Override = Override{Gate: gate, By: "alice", Reason: "it is off", Scope: Scope(s.Status), At: s.Now}
	return s
}

func (s *story) want(phase v1alpha1.NodeFencePhase, reason, message string) {
	s.Helper()
	if got := s.Status; got.Phase != phase || got.Reason != reason || got.Message != message {
		s.Fatalf("the node is\n%s (%s): %s\nand should be\n%s (%s): %s", got.Phase, got.Reason, got.Message, phase, reason, message)
	}
}

func (s *story) wantHealthy() {
	s.Helper()
	s.want(v1alpha1.NodeHealthy, ReasonReady, "")
}

func (s *story) wantDrained() {
	s.Helper()
	s.want(v1alpha1.NodeDrained, ReasonDrained, "fenced, and nothing is left on it; reboot it to bring it back")
}

func (s *story) wantObjects(want ...string) {
	s.Helper()
	var got []string
	for _, n := range s.Fences {
		state := "Fenced"
		if n.Unfenced {
			state = "Unfenced"
		}
		if n.Deleting {
			state = "Deleting"
		}
		got = append(got, fmt.Sprintf("%s %v %s", state, n.CIDRs, n.Class))
	}
	if !slices.Equal(got, want) {
		s.Fatalf("there are %q, and should be %q", got, want)
	}
}

// attach asks the gate for the volume of the story, on another node.
func (s *story) attach() *Held {
	v := pv("pv-1", rbd, "h-1", "a", "ReadWriteOnce")
	return Attach(v, "node-2", []Holder{{Node: s.Node, Status: s.Status, Override: s.Override}, {Node: readyNamed("node-2", "boot-2")}}, s.Policy)
}

func (s *story) wantHeld(held bool) {
	s.Helper()
	if got := s.attach(); (got != nil) != held {
		s.Fatalf("in phase %s (%s), the gate says %+v", s.Status.Phase, s.Status.Reason, got)
	}
}

func (s *story) wantReason(reason string) {
	s.Helper()
	if s.Status.Reason != reason {
		s.Fatalf("the node is %s (%s): %s", s.Status.Phase, s.Status.Reason, s.Status.Message)
	}
}

func (s *story) wantPhase(phase v1alpha1.NodeFencePhase, reason string) {
	s.Helper()
	s.want(phase, reason, s.Status.Message)
}

func (s *story) wantForgotten() {
	s.Helper()
	if !s.step.Forget {
		s.Fatalf("the record is not forgotten: %+v", s.step)
	}
}

func (s *story) wantWarning() {
	s.Helper()
	if !s.step.Warning {
		s.Fatalf("no warning: %+v", s.step)
	}
}

// take the node's name, as another machine.
func (s *story) take(machine, address string) {
	s.pass(time.Minute)
	n := readyNamed("node-1", "boot-of-"+machine)
	n.Machine.UID, n.Machine.SystemUUID = "uid-of-"+n.Machine.UID, machine
	n.ReadyChanged, n.Addresses[0] = s.Now, addr(address)
	s.Node, s.Replaced, s.Others = Node{Name: "node-1"}, true, append(s.Others, Other{Record: "node-1-0", Node: n})
	s.Holding, s.Ledger = nil, nil
}
