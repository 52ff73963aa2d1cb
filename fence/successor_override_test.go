package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// wantGateInUse is that of a node whose kubelet's last word is that it uses the volume.
func (s *story) wantGateInUse(reason string) {
	s.Helper()
	s.wantGateOn(true, reason)
}

// The override that the message prescribes opens the gate while the kubelet's last word
// is that it uses the volume; it is not of a run that came after it.
func TestAnOverrideOfALostSuccessorOpensTheGate(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*story)
		want string
	}{
		"it is off":   {func(*story) {}, ""},
		"and tainted": {func(s *story) { s.Node.OutOfService = true }, ""},
		"it was not":  {func(s *story) { s.Node.Ready, s.Node.ReadyChanged = true, s.Now }, ReasonReplaced},
		"it has booted, and is lost again": {func(s *story) {
			s.Node.Machine.BootID = "boot-of-machine-2-2"
		}, ReasonReplaced},
		"a third machine has the name": {func(s *story) { s.take("machine-3", "192.168.1.3") }, ReasonReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			s := replacedStory(t)
			s.lose()
			s.look()
			s.wantGateInUse(ReasonSuccessorLost)
			s.pass(time.Minute)
			s.override(GateAttach)
			s.pass(time.Minute)
			test.then(s)
			s.wantGateInUse(test.want)
			s.look()
			if test.want == "" {
				s.wantGateInUse("")
			} else if s.gate("node-2", true) == nil {
				t.Fatal("let go")
			}
		})
	}
	// One that is shared waits for that too.
	s := replacedStory(t)
	s.lose()
	s.look()
	shared := func() bool {
		v := pv("pv-9", rbd, "h-9", "a", "ReadWriteMany")
		return Attach(v, "node-2", []Holder{{Node: s.Node, Status: s.Status, Override: s.Override, InUse: true}}, s.Policy) == nil
	}
	if shared() {
		t.Fatal("let go before anybody has said so")
	}
	s.pass(time.Minute)
	if s.override(GateAttach); !shared() {
		t.Fatal("held")
	}
	// What is not on record is not overridden.
	s = replacedStory(t)
	s.lose()
	s.look()
	s.pass(time.Minute)
	s.override(GateAttach)
	s.Status.Volumes = ownVolumes(s.Status.Volumes)
	s.wantGateInUse(ReasonReplaced)
}

// What was let go of was forgotten, came up again by the attachment that was left, and
// was held again, as lost after the override.
func TestAnOverrideOfALostSuccessorIsNotUndone(t *testing.T) {
	s := replacedStory(t)
	s.Node = Node{Name: "node-1"}
	s.look()
	s.want(v1alpha1.NodeDrained, ReasonSuccessorLost, lostSuccessor)
	s.pass(time.Minute)
	s.override(GateAttach)
	for range 4 {
		s.pass(time.Minute)
		s.look()
		s.wantGate("")
		s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)
		if _, successor := heldBy(s.Status.Volumes, "pv-9"); !successor {
			t.Fatalf("it is to come up again: %+v", s.Status.Volumes)
		}
	}
	s.Holding = append(s.Holding, held("pv-8", rbd, "a")) // nobody knew of it when that was said
	s.look()
	s.wantGate("")
	s.want(v1alpha1.NodeDrained, ReasonSuccessorLost, strings.Replace(lostSuccessor, "pv-9", "pv-8", 1))
	s.Holding = nil
	s.look()
	if own, successor := heldBy(s.Status.Volumes, "pv-9"); own || successor {
		t.Fatalf("got %+v", s.Status.Volumes)
	}
	// It does not keep the first one out, whose name is on the attachment that is left.
	s = replacedStory(t)
	s.Node = Node{Name: "node-1"}
	s.look()
	s.pass(time.Minute)
	s.override(GateAttach)
	s.look()
	s.boot("boot-2")
	s.Node = readyNamed("node-1", "boot-2")
	for range 3 {
		s.look()
		s.csi()
	}
	s.look()
	s.want(v1alpha1.NodeHealthy, ReasonReady, "")
}
