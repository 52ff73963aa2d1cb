package fence

import (
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Faults of Rook's design (rook#14832, #12923 and its code). Those of reading and writing objects have their tests in
// controllers/fencing, internal/reads/fencingreads and internal/cephclients.

// After the taint, the volume may be mounted elsewhere, and the address may belong to another machine.
func TestAddressIsNotReadAfterTaint(t *testing.T) {
	s := lost(t).taint(true)
	s.Node.Addresses[0] = addr("192.168.1.77")
	s.report(identity(rbd, "a", "10.0.0.77/32")).look().wantObjects(fencedOf1)
}

// Rook stopped at the first fence that failed or succeeded.
func TestAllIdentitiesAreFenced(t *testing.T) {
	unknown := pv("pv-0", other, "unknown", "ReadWriteOnce")
	s := healthy(t).report(identity(rbd, "a", "10.0.0.1/32"), identity(cephFS, "a", "10.0.0.2/32"), identity(other, "b", "10.0.0.3/32"))
	s.hold(unknown.Held(), held("pv-1", rbd, "a"), held("pv-2", cephFS, "a"), held("pv-3", other, "b"))
	s.look().loseTainted().wantObjects("Fenced [10.0.0.1/32] fence-"+rbd, "Fenced [10.0.0.2/32] fence-"+cephFS, "Fenced [10.0.0.3/32] fence-"+other)
	s.wantReason(ReasonNoIdentity).changeFirst(succeeded).look().wantHeld(false).answer()
	must.True(t, Attach(unknown, "node-2", s.namesakes().Holders(unknown), s.Policy) != nil, "a volume of a refused fence is released")
}

// What the property test of invariant 10 found.

// A fence that is not yet confirmed would block the next owner of the address.
func TestTakenAddressIsNotFenced(t *testing.T) {
	taker := liveAt("10.0.0.1")
	s := requested(t).beside(taker).look().want(v1alpha1.NodeFencing, ReasonAddressInUse, "not fenced: "+rbd+" of a: 10.0.0.1 is also an address of node node-7, which is not lost")
	s.wantObjects(deletingOf1).objects().look().wantObjects().wantHeld(true)
	// After the confirmation, the storage refuses the taker already.
	fenced(t).beside(taker).look().is(saysDrained)
}

// Another NetworkFence unblocks the address: a foreign object, or that of another identity.
func TestFenceIsDoubtedWhileOtherObjectUnfences(t *testing.T) {
	s := fenced(t)
	s.Fences = append(s.Fences, NetworkFence{Name: "by-hand", Unfenced: true, CIDRs: []string{"10.0.0.1/32"}})
	s.look().want(v1alpha1.NodeFencing, ReasonLeftoverUnfenced, "not fenced: "+rbd+" of a: NetworkFence by-hand is Unfenced for 10.0.0.1: csi-addons would unblock the node; delete it")
	s.wantHeld(true).objects().look().wantObjects(fencedOf1).wantHeld(true) // the state of the old object is unknown
	s = healthy(t).loseWith(cephFS, "a", "10.0.0.1/32").answer().wantHeld(false)
	s.change(s.Fences[1].Name, func(n *NetworkFence) { n.Unfenced = true }).look().wantHeld(true) // although the NetworkFence of its identity is unchanged
}

// A node that is fenced and Ready may get an address that its fence lacks: what it mounts by that is not refused.
func TestNewAddressOfFencedNodeIsNotForgotten(t *testing.T) {
	s := fenced(t).comeBack().taint(false).report(identity(rbd, "a", "10.0.0.2/32")).look().loseTainted().answer()
	must.True(t, s.attach() == nil || s.Status.Phase == v1alpha1.NodeFencing, "pv-1 is held, and the record says %s (%s): %s", s.Status.Phase, s.Status.Reason, s.Status.Message)
}
