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
			s := fenced(t)
			s.deleteNode().look()
			s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)
			s.pass(time.Hour)
			back := readyNamed("node-7", "boot-2")
			back.Created = s.Now.Add(-10 * time.Minute)
			s.Others = []Other{{Record: "node-7", Node: back, Status: v1alpha1.NodeFenceStatus{ReadySince: at(back.Created)}}}
			test.but(s)
			s.look()
			if !test.renamed {
				if s.Status.RunsAs != "" || s.Status.Phase != v1alpha1.NodeDrained || len(s.unfenced) > 0 {
					t.Fatalf("got %+v", s.Status)
				}
				return
			}
			s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "the machine has rebooted, and is node node-7 now: unfencing it")
			if len(s.Status.Volumes) > 0 {
				t.Fatalf("it holds %v", s.Status.Volumes)
			}
			s.Others[0].Node.Ready = false // it was seen to have rebooted
			s.answers(2)
			s.wantObjects()
			s.wantForgotten()
		})
	}
}

// Another fenced machine at its address is not unfenced with it.
func TestRenamedMachineWaitsForSharedAddress(t *testing.T) {
	s := fenced(t)
	s.deleteNode().look()
	s.pass(time.Hour)
	back := readyNamed("node-7", "boot-2")
	back.Created = s.Now.Add(-10 * time.Minute)
	behind := Other{Record: "node-8", Node: Node{Name: "node-8"}, Status: v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained, Incident: "i",
		Fences: []v1alpha1.Fence{{Name: "theirs", Incident: "i", CIDRs: []string{"10.0.0.1/32"}, State: v1alpha1.FenceFenced}}}}
	s.Others = []Other{{Record: "node-7", Node: back, Status: v1alpha1.NodeFenceStatus{ReadySince: at(back.Created)}}, behind}
	s.look()
	s.wantReason(ReasonSharedAddress)
	s.wantObjects(deletingOf1) // the address stays blocked
	s.csi()
	s.Others = s.Others[:1]
	s.look()
	s.wantObjects(unfencedOf1)
	s.answers(2)
	s.wantObjects()
}

// What was never fenced is forgotten, once nothing is shown under the former name.
func TestUnfencedRenamedMachineIsForgotten(t *testing.T) {
	s := recordedLoss(t)
	s.Status.Identities = nil
	s.Node, s.Left = Node{Name: "node-1"}, []string{"VolumeAttachment a of pv-1"}
	s.look()
	s.wantReason(ReasonNoIdentity)
	s.pass(time.Hour)
	back := readyNamed("node-7", "boot-2")
	back.Created = s.Now.Add(-10 * time.Minute)
	s.Others = []Other{{Record: "node-7", Node: back, Status: v1alpha1.NodeFenceStatus{ReadySince: at(back.Created)}}}
	s.look()
	s.want(v1alpha1.NodeLost, ReasonRenamed, "the machine has rebooted, and is node node-7 now; attachments or pods of its former name are left: VolumeAttachment a of pv-1")
	s.Holding, s.Left = nil, nil
	s.look()
	s.wantForgotten()
}
