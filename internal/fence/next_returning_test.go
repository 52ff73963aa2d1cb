package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const mayHaveThem = "; if new pods keep them too, as a DaemonSet's do, the node may be readmitted with them, since it has rebooted: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=unfence: <why>'"

// A pod that tolerates the taint, or one that only keeps others away, is never taken off
// the node: Kubernetes keeps its volume attached, and it can't mount it before the node is unfenced.
func TestPodsWithOldAttachmentsAreNamed(t *testing.T) {
	s := fenced(t)
	s.boot("boot-2")
	s.Node.OutOfService = false
	s.pass(DefaultReadyFor)
	s.OldAttachments = []string{"VolumeAttachment va-1 of pv-1"}
	s.look()
	const left = "attachments from before the reboot remain: VolumeAttachment va-1 of pv-1"
	s.look()
	s.want(v1alpha1.NodeReturned, ReasonOldAttachments, left+mayHaveThem)
	s.OldPods = []string{"default/agent-x", "apps/agent-y"}
	s.look()
	s.want(v1alpha1.NodeReturned, ReasonOldAttachments, left+"; pods from before the reboot keep them (default/agent-x, apps/agent-y): kubectl delete pod -n default agent-x"+mayHaveThem)
	s.OldPods = nil // it was deleted, and its DaemonSet has made the next one
	s.pass(time.Minute).look()
	s.want(v1alpha1.NodeReturned, ReasonOldAttachments, left+mayHaveThem)
	s.override(GateUnfence)
	for range 3 {
		s.look()
		s.csi()
	}
	s.look()
	s.wantHealthy()
}

// No message suggests to unfence what may still write.
func TestOldAttachmentsWithoutRebootAreNotCalledSafe(t *testing.T) {
	for name, spoil := range map[string]func(*story){
		"a fence is of this boot":        func(s *story) { s.Fences[0].Labels = map[string]string{BootLabel: LabelValue("boot-2")} },
		"a fence is of no known boot":    func(s *story) { s.Fences[0].Labels = nil },
		"a fence is there no more":       func(s *story) { s.Status.Fences[0].Name = "gone" },
		"its boot is not known":          func(s *story) { s.Node.Machine.BootID, s.Policy.ReadyFor = "", 0 },
		"it was lost again, and is back": func(s *story) { s.lose(); s.look(); s.Holding = nil; s.boot("boot-2"); s.Policy.ReadyFor = 0 },
	} {
		s := fenced(t)
		s.boot("boot-2")
		s.taint(false).look()
		s.wantReason(ReasonSettling)
		s.pass(DefaultReadyFor)
		s.OldAttachments = []string{"VolumeAttachment va-1 of pv-1"}
		spoil(s)
		s.step = Next(s.Facts)
		if got := s.step.Status; got.Reason != ReasonOldAttachments || strings.Contains(got.Message, GateUnfence) {
			t.Errorf("%s: it is %s (%s): %s", name, got.Phase, got.Reason, got.Message)
		}
	}
}

// Another machine of its name was lost, and is back; nothing of it was fenced.
func TestReadyNodeIsNotReportedAsRebooted(t *testing.T) {
	s := askedOnly(t)
	s.Status.Fences = append(s.Status.Fences, v1alpha1.Fence{Name: "of-before", Incident: "before", Driver: other, ClusterID: "b", CIDRs: []string{"10.0.0.9/32"}, State: v1alpha1.FenceFenced})
	s.back()
	s.taint(false).look()
	s.want(v1alpha1.NodeReturned, ReasonSettling, "the node is Ready again; it is readmitted once it has been Ready for 1m0s")
	s = fenced(t)
	s.boot("boot-2").look()
	s.want(v1alpha1.NodeReturned, ReasonTainted, "the node has rebooted; to readmit the node: kubectl taint nodes node-1 node.kubernetes.io/out-of-service-")
}

// The gate is open, with or without the taint.
func TestOverriddenUntaintedLossIsReported(t *testing.T) {
	s := recordedLoss(t)
	s.override(GateAttach).look()
	s.want(v1alpha1.NodeLost, ReasonOverridden, `the node is not Ready; its volumes may be attached elsewhere although it is not fenced: alice says "it is off"`)
	s.wantHeld(false)
	s.wantWarning()
	s.Node.OutOfService = true
	s.pass(time.Second).look()
	if s.Status.Phase != v1alpha1.NodeFencing {
		t.Fatalf("tainted, it is %s: %s", s.Status.Phase, s.Status.Message)
	}
	s.wantObjects(fencedOf1)
}

// Fairlead has given it, and an operator another of a different effect: his is waited for.
func TestOperatorTaintBesideOwnIsWaitedFor(t *testing.T) {
	s := fenced(t)
	s.boot("boot-2")
	s.Node.OwnTaint, s.Node.OthersTaint = true, true
	s.pass(DefaultReadyFor).look()
	s.want(v1alpha1.NodeReturned, ReasonTainted, "the node has rebooted; to readmit the node: kubectl taint nodes node-1 node.kubernetes.io/out-of-service-")
	s.Node.OthersTaint = false
	s.look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")
}
