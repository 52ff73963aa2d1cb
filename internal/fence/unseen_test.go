package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// comeBack as node-1 in a boot, Ready for long enough.
func (s *story) comeBack(boot string) *story {
	s.Helper()
	s.pass(time.Minute)
	s.Node = readyNamed("node-1", boot)
	s.Node.Machine.UID, s.Node.ReadyChanged = "uid-2", s.Now
	return s.look().pass(time.Hour).look()
}

// While Fairlead was away, the node may have rebooted, mounted its volumes again, and been cut off.
func TestBootOfNodeThatNobodySawDeletedIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		goes     func(*story)
		unfenced bool
	}{
		"seen until its deletion":     {func(s *story) { s.dropNode() }, true},
		"not seen":                    {func(s *story) { s.dropNodeUnseen() }, false},
		"lost, then not seen":         {func(s *story) { s.lose().look().dropNodeUnseen() }, false},
		"fenced, then not seen":       {func(s *story) { s.loseTainted().answer().dropNodeUnseen() }, false},
		"seen, and Fairlead restarts": {func(s *story) { s.dropNode().look().LastBoot = "" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t).do(c.goes).hold().look().answer()
			s.wantPhase(v1alpha1.NodeDrained, ReasonNodeDeleted).wantHeld(false)
			s.comeBack("boot-2").hold(held("pv-1", rbd, "a")) // its kubelet lists it
			if c.unfenced {
				s.wantUnfencing()
				return
			}
			s.wantPhase(v1alpha1.NodeFenced, ReasonNotRebooted).wantObjects(fencedOf1)
			s.wantThat(strings.Contains(s.Status.Message, "its last boot is unknown; reboot it, then: kubectl annotate"), "the message says what to do")
			s.comeBack("boot-3").wantReason(ReasonNotRebooted) // only a person ends it
			s.override(GateUnfence).look().answers(2).wantObjects().wantHealthy()
		})
	}
}

// In the boot that was seen, it may have mounted by another address: as with a Node that exists, no fence is requested.
func TestNodeDeletedInAnotherBootIsNotFencedByFormerAddresses(t *testing.T) {
	s := healthy(t)
	s.Node.Machine.BootID = "boot-2"
	s.dropNode().hold().look().wantReason(ReasonNoIdentity).wantObjects().wantHeld(true)
}

// In the unknown boot, old mounts may be hidden from the kubelet.
func TestNodeOfUnknownBootKeepsVolumesForGracePeriod(t *testing.T) {
	s := healthy(t)
	s.Status.Identities = nil // not fenced
	s.dropNodeUnseen().hold().look().wantReason(ReasonNoIdentity)
	s.Node = readyNamed("node-1", "boot-2")
	s.look().wantVolumes(1).wantHeld(true).pass(endsWithin).look().wantVolumes(0).wantHeld(false)
}

// A node is not readmitted while its kubelet lists a volume in use that is not attached to the node.
func TestNodeWithMountedVolumeIsNotReadmitted(t *testing.T) {
	mounted := held("pv-1", rbd, "a")
	mounted.Detached = true
	s := fenced(t).hold(mounted).boot("boot-2").taint(false).pass(time.Minute).look()
	s.want(v1alpha1.NodeReturned, ReasonStillMounted, "the node has rebooted, but its kubelet lists volumes in use that are not attached to it, so they may be mounted: pv-1; delete their pods on the node, or reboot it")
	s.wantObjects(fencedOf1).wantWarning()
	s.hold().look().wantUnfencing()
}

// No volume was released for the fence, so the node needs no reboot in whatever boot it is.
func TestRequestedFenceOfUnknownBootIsWithdrawn(t *testing.T) {
	s := healthy(t).dropNodeUnseen().hold().look().wantObjects(fencedOf1)
	s.Node = readyNamed("node-1", "boot-2")
	s.look().withdraw().wantVolumes(1).wantHeld(true)
}

// Only the time until the loss ages an address: afterwards the machine could not report any.
func TestLedgerDoesNotAgeAfterTheLoss(t *testing.T) {
	recordedLoss(t).pass(2 * DefaultMaxAge).taint(true).look().wantFencing()
}
