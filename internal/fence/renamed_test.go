package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A machine whose Node was deleted stayed fenced for ever, and its volumes held, though it had come back as another node.
func TestRebootedMachineOfOtherNameIsUnfenced(t *testing.T) {
	for name, test := range map[string]struct {
		but     func(*story)
		renamed bool
	}{
		"it has rebooted":          {func(*story) {}, true},
		"it has not":               {func(s *story) { s.Others[0].Node.Machine.BootID = "boot-1" }, false},
		"its boot is not known":    {func(s *story) { s.Others[0].Node.Machine.BootID = "" }, false},
		"it is another":            {func(s *story) { s.Others[0].Node.Machine.SystemUUID = "machine-2" }, false},
		"no UUID is known":         {func(s *story) { s.Status.Node.SystemUUID, s.Others[0].Node.Machine.SystemUUID = "", "" }, false},
		"a clone was there before": {func(s *story) { s.Others[0].Node.Created = noon }, false},
		"two have the UUID": {func(s *story) {
			s.Others = append(s.Others, s.Others[0])
			s.Others[1].Node.Name, s.Others[1].Node.Created = "node-8", noon
		}, false},
		"it is not Ready":          {func(s *story) { s.Others[0].Node.Ready = false }, false},
		"it is Ready for a moment": {func(s *story) { s.Others[0].Status.ReadySince = at(s.Now) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := deletedNode(t).pass(time.Hour)
			s.comeAs().do(test.but).look()
			if !test.renamed {
				s.wantThat(s.Status.RunsAs == "" && s.Status.Phase == v1alpha1.NodeDrained && len(s.unfenced) == 0, "the machine stays fenced")
				return
			}
			s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "the machine has rebooted, and is node node-7 now: unfencing it").wantVolumes(0)
			s.Others[0].Node.Ready = false // it was seen to have rebooted
			s.answers(2).wantObjects().wantForgotten()
		})
	}
}

func TestRenamedMachineWaitsForSharedAddress(t *testing.T) {
	s := deletedNode(t).pass(time.Hour).comeAs()
	s.beside(s.Others[0], sharing("node-8", v1alpha1.NodeDrained, v1alpha1.FenceFenced)).look().wantReason(ReasonSharedAddress)
	s.wantObjects(deletingOf1) // the address stays blocked
	s.csi().beside(s.Others[0]).look().wantObjects(unfencedOf1).answers(2).wantObjects()
}

// What was never fenced is forgotten, once nothing is shown under the former name.
func TestUnfencedRenamedMachineIsForgotten(t *testing.T) {
	s := recordedLoss(t)
	s.Status.Identities = nil
	s.Node, s.Left = Node{Name: "node-1"}, []string{"VolumeAttachment a of pv-1"}
	s.look().wantReason(ReasonNoIdentity).pass(time.Hour).comeAs().look()
	s.want(v1alpha1.NodeLost, ReasonRenamed, "the machine has rebooted, and is node node-7 now; attachments or pods of its former name are left: VolumeAttachment a of pv-1")
	s.Holding, s.Left = nil, nil
	s.look().wantForgotten()
}
