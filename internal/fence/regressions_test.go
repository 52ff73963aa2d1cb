package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// A person says of one loss that the node is off. Meanwhile what only a fence needs can't be read, so Fairlead only remembers. The node comes
// back and is lost again before that read works.
func TestRequestOfAnEarlierLossIsVoid(t *testing.T) {
	s := recordedLoss(t).request(GateAttach)
	remember := func() {
		n := s.namesakes()
		f := n.Of(len(s.rest))
		f.Now, f.Started, f.Policy, f.Ledger = s.Now, s.Started, s.Policy, s.Ledger
		is := Remember(f)
		must.True(t, !Forgets(s.Spec, is.Spec), "forgotten: %+v", is.Spec.Volumes)
		if s.Spec = is.Spec; is.Consumed {
			s.void, s.Request = is.Void, Request{}
		}
	}
	s.comeBack()
	remember()
	must.True(t, s.void != nil, "not void, carried out: %+v", s.Spec.Acts)
	s.lose()
	remember()
	s.look() // the read works again
	s.wantHeld(true)
}

// A machine that is gone is fenced. Fencing is switched off, and the machine is given up.
func TestGiveUpOfSwitchedOffEnds(t *testing.T) {
	s := fenced(t).dropNode().hold().look()
	s.mode(ModeOff)
	s.Policy.GiveUpAfter = time.Hour
	s.pass(2 * time.Hour)
	acts := 0
	for range 6 {
		s.pass(time.Second)
		if f := s.namesakes(); true {
			facts := f.Of(len(s.rest))
			facts.Now, facts.Started, facts.Policy, facts.Classes, facts.Fences = s.Now, s.Started, s.Policy, s.Classes, s.Fences
			step := Next(facts)
			if len(step.Spec.Acts) > len(s.Spec.Acts) {
				acts++
			}
			s.Spec = step.Spec
		}
	}
	must.True(t, acts <= 1, "%d acts were recorded in 6 looks", acts)
}

// Clocks of two leaders differ by an hour. A command that timed out a second ago may still run.
func TestLateCommandByAnotherClock(t *testing.T) {
	s := requested(t).comeBack().look() // withdrawn
	s.csiFails("rpc error: code = DeadlineExceeded desc = context deadline exceeded").pass(10 * time.Second).look()
	must.True(t, len(s.Spec.Fences) == 1 && s.Spec.Fences[0].FailedAt != nil, "%+v", s.Spec.Fences)
	// Another leader leads, whose clock is an hour ahead of that of the last one.
	s.pass(time.Hour)
	s.Started = s.Now
	s.pass(time.Second).csi().look().csi().look().csi().look().csi().look()
	must.True(t, len(s.Spec.Fences) == 1 && s.Spec.Fences[0].FailedAt != nil, "ended a second after the failure, though a command of before may still run: %+v", s.Spec.Fences)
}

// Two PersistentVolumes of one handle, of two storage clusters.
func TestGateJudgesByTheRecordedCluster(t *testing.T) {
	s := healthy(t).loseWith(rbd, "b", "10.0.0.1/32")
	for i := range s.Fences { // only cluster b has answered
		if s.Fences[i].Class == "" || s.Spec.Fences[i].ClusterID == "b" {
			succeeded(&s.Fences[i])
		}
	}
	s.look()
	again := pv("pv-1", rbd, "b", "ReadWriteOnce") // recreated, of the same handle
	held := Attach(again, "node-2", s.namesakes().Holders(again), s.Policy)
	must.True(t, held != nil, "attached although cluster a does not refuse the node: %+v", s.Spec.Fences)
}

// The PersistentVolume was not found when the volume was first recorded.
func TestClusterIsLearnedLater(t *testing.T) {
	s := healthy(t)
	unknown := v1alpha1.HeldVolume{PersistentVolume: "image of pv-9", Driver: rbd, VolumeHandle: "image of pv-9", Unknown: true}
	s.hold(unknown).look()
	s.hold(held("pv-9", rbd, "a")).look() // the PersistentVolume is found
	s.loseTainted()
	must.True(t, len(s.Fences) == 1, "no fence is requested: %s; volumes %+v", s.Status.Message, s.Spec.Volumes)
}

// A person has released a boot. Another boot of the machine registers, which may be the boot that was missed.
func TestReleasedIsNotPassedOn(t *testing.T) {
	s := healthy(t).dropUnseen().hold().act(GateAttach)
	must.True(t, s.Spec.Unseen && s.Spec.Volumes[0].Released, "%+v", s.Spec)
	s.register("boot-2")
	s.Node.Ready = false
	s.look()
	s.wantHeld(true)
}

// While the controller is away, node-1 reboots and mounts its volume again, its Node is deleted, and its kubelet registers again, which
// does not list what was detached meanwhile.
func TestRegisteredAgainInAnUnseenBoot(t *testing.T) {
	s := healthy(t)
	s.Node.Boot.BootID = "boot-2" // mounts pv-1
	s.register("boot-2").hold()   // Kubernetes has detached it: there was no Node
	s.wantHeld(true)
}

// The same, once the controller is back.
func TestRegisteredAgainInAnUnseenBootOnceSeen(t *testing.T) {
	s := healthy(t)
	s.Node.Boot.BootID = "boot-2"
	s.register("boot-2").hold().look()
	s.wantHeld(true)
}

// A fenced machine has rebooted. The controller crashes after it has made the record of the new boot. Then a pod on the node waits for the
// volume, which is attached elsewhere.
func TestWaitingPodKeepsNoFence(t *testing.T) {
	s := fenced(t).hold()
	s.Node.Boot.BootID = "boot-2"
	s.comeBack().taint(false)
	must.True(t, s.round() && len(s.rest) == 1, "%+v", s.rest)
	s.Node.InUse = []string{UniqueName(rbd, "image of pv-1")}
	s.Holding = []v1alpha1.HeldVolume{held("pv-1", rbd, "a")}
	s.look().pass(time.Hour).look()
	s.wantHeld(false)
	must.True(t, s.Spec.Over, "not over after an hour: %s %s", s.Status.Phase, s.Status.Message)
}

// A command that unfences timed out, and may still run for five minutes. Within them the node is lost again, and its new fence is confirmed.
func TestNewFenceWhileAnUnfencingMayStillRun(t *testing.T) {
	s := fenced(t).act(GateUnfence).taint(false)
	s.comeBack().look()
	wantHeldWhileUnfencingMayRun(t, s)
}

// The same without a person: the machine has rebooted, and is readmitted.
func TestNewFenceAfterAReboot(t *testing.T) {
	s := fenced(t).bootUntainted("boot-2").is(saysUnfencing)
	wantHeldWhileUnfencingMayRun(t, s)
}

// wantHeldWhileUnfencingMayRun lets the unfencing time out, loses the node again, and confirms the new fence at once.
func wantHeldWhileUnfencingMayRun(t *testing.T, s *story) {
	t.Helper()
	s.csiFails("rpc error: code = DeadlineExceeded desc = context deadline exceeded").pass(10 * time.Second).look()
	must.True(t, s.Spec.Fences[0].FailedAt != nil, "%+v", s.Spec.Fences)
	failed := s.Spec.Fences[0].FailedAt.Time
	s.hold(held("pv-1", rbd, "a")).look().loseTainted()
	for range 4 {
		s.answer()
	}
	must.True(t, s.Now.Sub(failed) < lateWithin, "too late")
	s.wantHeld(true)
}
