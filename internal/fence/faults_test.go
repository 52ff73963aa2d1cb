package fence

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// What became of Rook's design (rook#14832, #12923 and its code): each fault, and
// that it is not repeated. Those that can only be made where objects are read or
// written have their tests there: controllers/fencing, cluster, internal/cephclients.

// By then the volume may be mounted elsewhere, and the address is that of another.
func TestAddressIsNotReadAfterTaint(t *testing.T) {
	s := lostStory(t)
	s.Node.OutOfService = true
	s.Node.Addresses = []netip.Addr{addr("192.168.1.77")}
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.77/32")}
	s.look()
	s.wantObjects(fencedOf1)
}

// AlreadyExists was taken for success, so what an old incident had left over
// stood for the fence, Unfenced.
func TestLeftoverUnfencedObjectIsNoFence(t *testing.T) {
	s := recordedLoss(t)
	leftover := object("node-1", "boot-0", v1alpha1.Fence{Name: "node-1-rbd-a", Class: "fence-" + rbd, CIDRs: []string{"10.0.0.1/32"}}, true)
	leftover.Result, leftover.Message = resultSucceeded, unfencedMessage
	s.Fences = []NetworkFence{leftover}
	s.taint(true).look()
	s.want(v1alpha1.NodeFencing, ReasonLeftoverUnfenced, "not fenced: "+rbd+" of a: NetworkFence node-1-rbd-a is Unfenced for 10.0.0.1: csi-addons would unblock the node; delete it")
	s.wantHeld(true)
	s.Fences = nil
	s.look()
	s.wantObjects(fencedOf1)

	// Of the very name: whoever made it, it is not what was asked for.
	s.change(s.Fences[0].Name, func(n *NetworkFence) { n.Unfenced, n.Result, n.Message = true, resultSucceeded, unfencedMessage })
	s.look()
	s.wantHeld(true)
	s.wantObjects(deletingOf1)
}

func TestFenceOfOtherIncidentDoesNotCount(t *testing.T) {
	s := fenced(t)
	first := s.Fences[0]
	s = healthy(t)
	s.boot("boot-2").look()
	s.lose()
	s.Fences = []NetworkFence{first} // it says that it blocks
	s.taint(true).look()
	s.wantHeld(true)
	if len(s.created) != 1 || s.created[0] == first.Name {
		t.Fatalf("asked for %v", s.created)
	}
}

func TestIPv6AddressIsFencedWhole(t *testing.T) {
	for _, text := range []string{"fd00::1", "fd00::1/128", "2001:db8::a:0", "2001:db8:0:0:1:0:0:0"} {
		s := healthy(t)
		s.Status.Identities = nil
		s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", text)}
		s.look()
		s.loseTainted()
		bare, _, _ := strings.Cut(text, "/")
		if want := []string{addr(bare).String() + "/128"}; len(s.Fences) != 1 || !slices.Equal(s.Fences[0].CIDRs, want) {
			t.Errorf("%s: %+v", text, s.Fences)
		}
	}
}

// It stopped at the first identity that it could fence, or that failed.
func TestAllIdentitiesAreFenced(t *testing.T) {
	s := healthy(t)
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32"), identity(cephFS, "a", "10.0.0.2/32"), identity(other, "b", "10.0.0.3/32")}
	s.Holding = []v1alpha1.HeldVolume{held("pv-0", other, "unknown"), held("pv-1", rbd, "a"), held("pv-2", cephFS, "a"), held("pv-3", other, "b")}
	s.look()
	s.loseTainted()
	s.wantObjects("Fenced [10.0.0.1/32] fence-"+rbd, "Fenced [10.0.0.2/32] fence-"+cephFS, "Fenced [10.0.0.3/32] fence-"+other)
	if s.Status.Reason != ReasonNoIdentity {
		t.Errorf("what can't be fenced is not said: %s", s.Status.Message)
	}
	s.change(s.Fences[0].Name, func(n *NetworkFence) { n.Result, n.Message = resultSucceeded, fencedMessage })
	s.look()
	s.wantHeld(false) // the others wait for their own fences
	if Attach(pv("pv-3", other, "h", "b", "ReadWriteOnce"), "node-2", []Holder{{Node: s.Node, Status: s.Status}}, s.Policy) == nil {
		t.Error("what is not fenced yet is released")
	}
	s.answer()
	if Attach(pv("pv-0", other, "h", "unknown", "ReadWriteOnce"), "node-2", []Holder{{Node: s.Node, Status: s.Status}}, s.Policy) == nil {
		t.Error("what was not fenced is released")
	}
}

func TestFenceStaysUntilReboot(t *testing.T) {
	s := fenced(t)
	s.Node.OutOfService = false // the nodes gate can be down
	s.look()
	s.Now = s.Now.Add(time.Minute)
	s.Node.Ready, s.Node.ReadyChanged = true, s.Now
	s.Ledger = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
	for range 3 {
		s.pass(time.Hour).look()
		s.csi()
	}
	s.want(v1alpha1.NodeFenced, ReasonNotRebooted, "the node is Ready again but has not booted since it was lost: it still has its old mounts; reboot it")
	s.wantObjects(fencedOf1)
	s.boot("boot-2")
	s.pass(time.Minute).look()
	s.wantObjects(unfencedOf1)
}

// What the property test of invariant 10 found.

// A fence that does not stand yet shuts out whoever has the address when it does.
func TestTakenAddressIsNotFenced(t *testing.T) {
	s := askedOnly(t)
	taker := Other{Node: Node{Name: "node-2", Exists: true, Ready: true, Addresses: []netip.Addr{addr("10.0.0.1")}}}
	s.Others = []Other{taker}
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonAddressInUse, "not fenced: "+rbd+" of a: 10.0.0.1 is also an address of node node-2, which is not lost")
	s.wantObjects(deletingOf1)
	s.Fences = nil
	s.look()
	s.wantObjects()
	s.wantHeld(true)
	// Once it stands, whoever takes the address is shut out already.
	s = fenced(t)
	s.Others = []Other{taker}
	s.look()
	s.wantDrained()
}

// Another party's object, or that of another identity, lets the address in again.
func TestFenceIsDoubtedWhileOtherObjectUnfences(t *testing.T) {
	s := fenced(t)
	s.Fences = append(s.Fences, NetworkFence{Name: "by-hand", Unfenced: true, CIDRs: []string{"10.0.0.1/32"}})
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonLeftoverUnfenced, "not fenced: "+rbd+" of a: NetworkFence by-hand is Unfenced for 10.0.0.1: csi-addons would unblock the node; delete it")
	s.wantHeld(true)
	s.Fences = nil
	s.look()
	s.wantObjects(fencedOf1) // recreated: the state of the old one is unknown
	s.wantHeld(true)

	s = healthy(t)
	s.loseWith(cephFS, "a", "10.0.0.1/32")
	s.answer()
	s.change(s.Fences[1].Name, func(n *NetworkFence) { n.Unfenced = true })
	s.look()
	s.wantHeld(true) // also of the identity whose own object is as it was
}
