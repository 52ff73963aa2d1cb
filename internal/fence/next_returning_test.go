package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const mayHaveThem = "; if new pods keep them too, as a DaemonSet's do, the node may be readmitted with them, since it has rebooted: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=unfence: <why>'"

// A pod that tolerates the taint is never deleted: Kubernetes keeps its volume attached.
func TestPodsWithOldAttachmentsAreNamed(t *testing.T) {
	s := fenced(t).boot("boot-2").taint(false).pass(DefaultReadyFor)
	s.OldAttachments = []string{"VolumeAttachment va-1 of pv-1"}
	const left = "attachments from before the reboot remain: VolumeAttachment va-1 of pv-1"
	s.look().want(v1alpha1.NodeReturned, ReasonOldAttachments, left+mayHaveThem)
	s.OldPods = []string{"default/agent-x", "apps/agent-y"}
	s.look().want(v1alpha1.NodeReturned, ReasonOldAttachments, left+"; pods from before the reboot keep them (default/agent-x, apps/agent-y): kubectl delete pod -n default agent-x"+mayHaveThem)
	s.OldPods = nil // it was deleted, and its DaemonSet has made the next one
	s.pass(time.Minute).look().want(v1alpha1.NodeReturned, ReasonOldAttachments, left+mayHaveThem).override(GateUnfence)
	for range 3 {
		s.look().csi()
	}
	s.look().wantHealthy()
}

// No message suggests to unfence what may still write.
func TestOldAttachmentsWithoutRebootAreNotCalledSafe(t *testing.T) {
	for name, spoil := range map[string]func(*story){
		"a fence is of this boot":        func(s *story) { s.Fences[0].Labels = map[string]string{BootLabel: LabelValue("boot-2")} },
		"a fence is of no known boot":    func(s *story) { s.Fences[0].Labels = nil },
		"a fence is there no more":       func(s *story) { s.Status.Fences[0].Name = "gone" },
		"its boot is not known":          func(s *story) { s.Node.Machine.BootID, s.Policy.ReadyFor = "", 0 },
		"it was lost again, and is back": func(s *story) { s.lose().look().hold().boot("boot-2").Policy.ReadyFor = 0 },
	} {
		s := fenced(t).boot("boot-2").taint(false).look().wantReason(ReasonSettling).pass(DefaultReadyFor)
		s.OldAttachments = []string{"VolumeAttachment va-1 of pv-1"}
		if got := Next(s.do(spoil).Facts).Status; got.Reason != ReasonOldAttachments || strings.Contains(got.Message, GateUnfence) {
			t.Errorf("%s: it is %s (%s): %s", name, got.Phase, got.Reason, got.Message)
		}
	}
}

// Another machine of its name was lost, and is back; nothing of it was fenced.
func TestReadyNodeIsNotReportedAsRebooted(t *testing.T) {
	s := requested(t)
	s.Status.Fences = append(s.Status.Fences, v1alpha1.Fence{Name: "of-before", Incident: "before", Driver: other, ClusterID: "b", CIDRs: []string{"10.0.0.9/32"}, State: v1alpha1.FenceFenced})
	s.returnSameBoot().taint(false).look().want(v1alpha1.NodeReturned, ReasonSettling, "the node is Ready again; it is readmitted once it has been Ready for 1m0s")
	fenced(t).boot("boot-2").look().wantTainted()
}

// The gate is open, with or without the taint.
func TestOverriddenUntaintedLossIsReported(t *testing.T) {
	s := recordedLoss(t).override(GateAttach).look()
	s.want(v1alpha1.NodeLost, ReasonReleased, `the node is not Ready; its volumes may be attached elsewhere although it is not fenced: alice says "it is off". Its pods move once it is tainted`)
	s.wantHeld(false).wantWarning().taint(true).pass(time.Second).look().wantPhase(v1alpha1.NodeFencing, ReasonOverridden).wantObjects(fencedOf1)
}

// Regression: such a node was Healthy, "and its volumes are attached nowhere else".
func TestReleasedNodeThatReturnsUnrebootedHasOldMounts(t *testing.T) {
	released := func() *story { return recordedLoss(t).override(GateAttach).look().wantReason(ReasonReleased) }
	wantWarned := func(s *story) *story {
		t.Helper()
		s.wantThat(strings.Contains(s.Status.Message, "they may have two writers") && !strings.Contains(s.Status.Message, "nowhere else"), "the message warns: "+s.Status.Message)
		return s
	}
	s := wantWarned(released().returnSameBoot().look().wantPhase(v1alpha1.NodeHealthy, ReasonOldMounts))
	wantWarned(s.taint(true).look().wantPhase(v1alpha1.NodeHealthy, ReasonTaintedButReady).pass(time.Hour).look().wantPhase(v1alpha1.NodeHealthy, ReasonTaintedButReady))
	s.taint(false).look().wantPhase(v1alpha1.NodeHealthy, ReasonReady) // an hour is enough for its kubelet

	released().returnSameBoot().look().boot("boot-2").look().wantPhase(v1alpha1.NodeHealthy, ReasonReady)
	released().boot("boot-2").look().wantPhase(v1alpha1.NodeHealthy, ReasonReady)
	released().returnSameBoot().look().pass(endsWithin-time.Second).look().wantPhase(v1alpha1.NodeHealthy, ReasonOldMounts).
		pass(2*time.Second).look().wantPhase(v1alpha1.NodeHealthy, ReasonReady)
	recordedLoss(t).look().returnSameBoot().look().wantPhase(v1alpha1.NodeHealthy, ReasonReady)

	// No fence is possible, and none is requested.
	s = released()
	s.Status.Identities = nil
	s.taint(true).look()
	wantWarned(s.returnSameBoot().look().wantPhase(v1alpha1.NodeHealthy, ReasonTaintedButReady))
	// Requested, and never answered.
	s = released().taint(true).look().wantPhase(v1alpha1.NodeFencing, ReasonOverridden).returnSameBoot().look()
	wantWarned(s.wantPhase(v1alpha1.NodeFencing, ReasonOldMounts))
	wantWarned(s.look()) // once
	s.wantThat(strings.Count(s.Status.Message, "two writers") == 1, "said once: "+s.Status.Message)
}

// Fairlead's taint has one effect, and an operator's another.
func TestOperatorTaintBesideOwnIsWaitedFor(t *testing.T) {
	others := func(theirs bool) func(*story) { return func(s *story) { s.Node.OthersTaint = theirs } }
	fenced(t).boot("boot-2").own(true).do(others(true)).pass(DefaultReadyFor).look().wantTainted().do(others(false)).look().wantUnfencing()
}
