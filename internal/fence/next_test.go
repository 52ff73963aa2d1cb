package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	tellsHowToTaint = "; its volumes are held (pv-1). If it does not come back, shut it down and say so: kubectl taint nodes node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	stayingFenced   = "the node is gone and stays fenced; when you know that it never comes back: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=unfence: <why>'"
	fencedOf1       = "Fenced [10.0.0.1/32] fence-" + rbd
	unfencedOf1     = "Unfenced [10.0.0.1/32] fence-" + rbd
	deletingOf1     = "Deleting [10.0.0.1/32] fence-" + rbd
)

// From healthy to healthy, as an operator sees it.
func TestLostNodeIsFencedAndReadmitted(t *testing.T) {
	s := healthy(t).wantHeld(false).lose().look().want(v1alpha1.NodeLost, ReasonNotReady, "the node is not Ready"+tellsHowToTaint).wantHeld(true).wantObjects()

	s.taint(true)
	s.Left = []string{"Pod default/db-0", "VolumeAttachment csi-1 of pv-1"}
	s.look().wantFencing().wantObjects(fencedOf1).wantHeld(true)
	s.wantThat(s.attach().Soon && !s.step.Warning, "the fence is expected soon").csi()
	s.wantHeld(true) // confirmed, and not recorded

	s.answer().want(v1alpha1.NodeFenced, ReasonFenced, "the node is not Ready; fenced; still on it: Pod default/db-0, VolumeAttachment csi-1 of pv-1")
	s.wantHeld(false)

	s.Left, s.Holding = nil, nil
	s.look().wantDrained().wantHeld(false)
	s.wantThat(s.Status.VolumeCount == 1, "its volume is on record until it is back")

	s.boot("boot-2").look().wantTainted().taint(false).look().wantSettling().wantAfter(time.Minute)

	s.OldAttachments = []string{"csi-1"}
	s.pass(time.Minute).look().want(v1alpha1.NodeReturned, ReasonOldAttachments, "attachments from before the reboot remain: csi-1"+mayHaveThem)

	s.OldAttachments = nil
	s.look().wantUnfencing().wantObjects(unfencedOf1)
	s.answer().wantObjects(deletingOf1).answer().wantHealthy().wantObjects()
	s.wantThat(s.Status.Incident == "" && s.Status.LostSince == nil && len(s.Status.Fences) == 0 && s.Status.Node.BootID == "boot-2", "the incident is over")
}

// The gate releases a shared file system until the taint.
func TestMessageOfLostNodeNamesHeldVolumesOnly(t *testing.T) {
	shared, device := held("pv-2", rbd, "a"), held("pv-3", rbd, "a")
	shared.Shared, device.Shared, device.Block = true, true, true
	const taint = "If it does not come back, shut it down and say so: kubectl taint nodes node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	for want, volumes := range map[string][]v1alpha1.HeldVolume{
		"the node is not Ready; its volumes are held (pv-1, pv-3). " + taint:                                       {held("pv-1", rbd, "a"), shared, device},
		"the node is not Ready; shared file systems are on it (pv-2), which are held once it is tainted. " + taint: {shared},
	} {
		s := lost(t)
		s.Status.Volumes = nil
		s.hold(volumes...).look().want(v1alpha1.NodeLost, ReasonNotReady, want)
	}
}

// A restarted kubelet does not list a volume that was detached by force, as if it were unmounted.
func TestVolumeThatLostNodeHidesIsHeld(t *testing.T) {
	recordedLoss(t).hold().look().want(v1alpha1.NodeLost, ReasonNotReady, "the node is not Ready"+tellsHowToTaint).wantHeld(true)
}

func TestLostNodeWithoutVolumesIsNotFenced(t *testing.T) {
	for name, volumes := range map[string][]v1alpha1.HeldVolume{"none": nil, "not ours": {held("pv", "ebs.csi.aws.com", "")}} {
		s := lost(t)
		s.Holding, s.Status.Volumes = volumes, nil
		s.taint(true).look().want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
		s.wantThat(len(s.created) == 0, "no fence is requested for volumes: "+name)
	}
}

func TestTaintedReadyNodeIsNotFenced(t *testing.T) {
	s := healthy(t).taint(true).hold().look() // Kubernetes has detached its volume by force
	s.want(v1alpha1.NodeHealthy, ReasonTaintedButReady, "the node has the taint node.kubernetes.io/out-of-service but is Ready: a healthy node is not fenced, and its volumes are attached nowhere else; take the taint away, or shut the node down")
	s.wantHeld(true).wantObjects().wantWarning().wantThat(!s.step.RemoveTaint && s.Status.VolumeCount == 1, "its volume stays on record")
	s.lose().look().wantFencing()
}

// The node is Ready again before a fence is requested, before it is confirmed, or after that.
func TestOwnTaintIsRemoved(t *testing.T) {
	recordedLoss(t).taint(true).own(true).returnSameBoot().look().wantRemovesTaint()
	requested(t).own(true).returnSameBoot().look().wantRemovesTaint()
	s := fenced(t).own(true).boot("boot-2").pass(time.Minute).look().wantUnfencing().answers(2).wantRemovesTaint()
	s.taint(false).own(false).look().wantHealthy()
}

func TestAutomaticReadmission(t *testing.T) {
	s := fenced(t)
	s.Policy.Automatic = true
	s.boot("boot-2").look().wantSettling().pass(time.Minute).look().wantUnfencing()
}

func TestRefusedFenceIsRequestedAgain(t *testing.T) {
	s := requested(t)
	first := s.Fences[0].Name
	s.pass(time.Second).csiFails("no such pool").look()
	s.want(v1alpha1.NodeFencing, ReasonDriverFailed, rbd+" of a: no such pool (failed 1 times; Fairlead retries)")
	s.wantHeld(true).wantObjects(fencedOf1).wantAfter(4*time.Second).wantThat(!s.attach().Soon, "the fence is not expected soon")
	s.pass(4 * time.Second).look().wantObjects(deletingOf1).csiFails("").look().wantObjects(fencedOf1)
	s.wantThat(s.Fences[0].Name == first, "the name stays "+first).csiFails("still no such pool").look().want(v1alpha1.NodeFencing, ReasonDriverFailed, rbd+" of a: still no such pool (failed 2 times; Fairlead retries)")
	s.wantAfter(10 * time.Second).answer().wantDrained().wantHeld(false)
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 5 * time.Second, 1: 10 * time.Second, 4: 80 * time.Second, 5: 2 * time.Minute, 1000: 2 * time.Minute} {
		must.Equal(t, backoff(failures), want, "after %d failures", failures)
	}
}

func TestMissingAnswerIsReported(t *testing.T) {
	s := requested(t)
	s.wantAfter(31 * time.Second).pass(31 * time.Second).look()
	s.want(v1alpha1.NodeFencing, ReasonUnanswered, "waiting for NetworkFence "+s.Fences[0].Name+": csi-addons has not answered; is its controller manager running, and is the driver's leader connected?")
	s.wantWarning()
}

// A node that is Ready and untainted gets pods, and each mount fails.
func TestMissingAnswerToUnfencingIsReported(t *testing.T) {
	s := fenced(t).boot("boot-2").taint(false).look().pass(DefaultReadyFor).look()
	s.wantUnfencing().pass(unanswered).look().wantUnfencing().pass(time.Second).look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnanswered, "waiting for NetworkFence "+s.Fences[0].Name+": "+noAnswer).wantWarning()
	// csi-addons unfences, and the object stays.
	s.changeFirst(func(n *NetworkFence) { n.Result, n.Message = resultSucceeded, unfencedMessage }).look()
	s.wantUnfencing().wantObjects("Deleting [10.0.0.1/32] fence-" + rbd).pass(unanswered + time.Second).look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnanswered, "waiting for NetworkFence "+s.Fences[0].Name+": "+noAnswer)
	// The node is lost again. Its new fence waits for the old object too.
	old := s.Fences[0].Name
	s.loseTainted().want(v1alpha1.NodeFencing, ReasonFencing, "not fenced: "+rbd+" of a: the earlier NetworkFence "+old+" would unblock the node and must be gone first: "+noAnswer)
	s.answers(2).wantDrained()
}

func TestChangedFenceIsRecreated(t *testing.T) {
	for name, how := range map[string]func(*NetworkFence){
		"flipped":       func(n *NetworkFence) { n.Unfenced = true },
		"other address": func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.9/32"} },
		"one more":      func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.1/32", "10.0.0.9/32"} },
		"none":          func(n *NetworkFence) { n.CIDRs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := fenced(t).changeFirst(how).look().want(v1alpha1.NodeFencing, ReasonFencing, rbd+" of a: the NetworkFence was changed; Fairlead recreates it")
			s.wantHeld(true).wantThat(len(s.deleted) == 1, "the NetworkFence is deleted")
			s.answer().wantObjects(fencedOf1).answer().wantHeld(false)
		})
	}
}

func TestDeletedNodeStaysFenced(t *testing.T) {
	s := healthy(t).deleteNode().report().look().wantFencing().answer().wantGone().wantHeld(false).pass(240 * time.Hour).look().wantGone()
	s.override(GateUnfence).look().want(v1alpha1.NodeUnfencing, ReasonOverridden, `unfencing the node: alice says "it is off"`)
	s.wantObjects(unfencedOf1).answers(2).wantForgotten()
}

// kubectl delete node, or a cloud controller that can't reach its API: the machine may be well.
func TestDeletedNodeIsHeldAndNotFencedAtOnce(t *testing.T) {
	held := "the node's object was deleted; its volumes are held (pv-1), and it is fenced unless it registers again within 40s"
	s := healthy(t).drop("boot-1").look().want(v1alpha1.NodeLost, ReasonNodeDeleted, held).wantHeld(true).wantObjects().wantAfter(deletedFor)
	s.pass(deletedFor-time.Second).look().want(v1alpha1.NodeLost, ReasonNodeDeleted, held).wantObjects().wantAfter(time.Second)
	back := readyNamed("node-1", "boot-1")
	back.Machine.UID = "another object"
	s.Node = back
	s.report(identity(rbd, "a", "10.0.0.1/32")).look().wantHealthy().wantObjects()
}

// An attachment is left. The machine is given up, and not fenced again.
func TestDeletedNodeWithAttachmentIsGivenUp(t *testing.T) {
	s := healthy(t).dropNode().report().look().answer().override(GateUnfence).look().answers(2)
	given := `the node's object was deleted; it is not fenced, and its volumes are not held: alice says "it is off"`
	s.want(v1alpha1.NodeLost, ReasonOverridden, given).wantObjects().wantHeld(false).pass(time.Hour).look()
	s.want(v1alpha1.NodeLost, ReasonOverridden, given).hold().look().wantForgotten()
}

func TestDeletedNodeWithoutVolumesIsForgotten(t *testing.T) {
	healthy(t).hold().look().dropNode().look().wantForgotten()
}

func TestReplacedMachineIsFenced(t *testing.T) {
	s := healthy(t).take("machine-2", "192.168.1.2").look().wantFencing()
	s.wantObjects(fencedOf1).answer().want(v1alpha1.NodeDrained, ReasonReplaced, stayingFenced).wantHeld(false)
	s.override(GateUnfence).look().answers(2).wantForgotten()
}

func TestAttachOverrideReleasesVolumes(t *testing.T) {
	s := lost(t)
	s.Status.Identities = nil
	s.taint(true).look().wantHeld(true).override(GateAttach).look()
	s.want(v1alpha1.NodeFencing, ReasonOverridden, `its volumes may be attached elsewhere although it is not fenced: alice says "it is off"`)
	s.wantHeld(false).Override = Override{}
	s.look().wantHeld(true)
}

// A node that stays lost after the override is neither fenced again nor held.
func TestUnfenceOverrideEndsWithReturn(t *testing.T) {
	const given = `the node is not Ready; it is not fenced, and its volumes are not held: alice says "it is off"`
	s := fenced(t).override(GateUnfence).look().answers(2).want(v1alpha1.NodeLost, ReasonOverridden, given)
	s.wantObjects().wantHeld(false).pass(time.Hour).look().want(v1alpha1.NodeLost, ReasonOverridden, given)
	s.taint(false).boot("boot-1").look().wantHealthy().lose().Override = Override{} // the override was for the earlier incident
	s.taint(true).look().wantObjects(fencedOf1).wantHeld(true)
}

func TestLostAgainWhileReturned(t *testing.T) {
	s := fenced(t)
	first := s.Fences[0].Name
	s.boot("boot-2").look().wantTainted().lose().look()
	s.wantHeld(true).wantThat(len(s.Fences) == 2 && s.Fences[1].Name != first, "another fence is requested")
	s.answer().wantHeld(false).bootUntainted("boot-3").wantObjects(unfencedOf1, unfencedOf1)
	s.answers(2).wantHealthy().wantObjects()
}

func TestUnfencingIsRetriedUntilConfirmed(t *testing.T) {
	s := fenced(t).bootUntainted("boot-2").wantObjects(unfencedOf1).look().wantUnfencing()
	s.csiFails("no route").look().want(v1alpha1.NodeUnfencing, ReasonDriverFailed, rbd+" of a: no route")
	s.pass(5 * time.Second).look().wantObjects(deletingOf1).csiFails("").look().wantObjects(unfencedOf1).answers(2).wantHealthy()
}

// A NetworkFence that a user deleted leaves the address blocked.
func TestDeletedFenceIsUnfenced(t *testing.T) {
	fenced(t).objects().bootUntainted("boot-2").wantObjects(unfencedOf1)
}

func TestChangedFenceIsRecreatedWhileUnfencing(t *testing.T) {
	s := fenced(t).bootUntainted("boot-2").changeFirst(func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.9/32"} })
	s.Fences[0].Result, s.Fences[0].Message = resultSucceeded, unfencedMessage
	s.look().want(v1alpha1.NodeUnfencing, ReasonDriverFailed, rbd+" of a: the NetworkFence was changed; Fairlead recreates it")
	s.answer().wantObjects(unfencedOf1)
}

func TestUnansweredFenceIsWithdrawnAfterReboot(t *testing.T) {
	s := requested(t).wantObjects(fencedOf1).boot("boot-2").look().wantTainted().wantObjects(deletingOf1).objects().taint(false)
	s.pass(time.Minute).look()
	s.wantObjects(unfencedOf1) // csi-addons may have fenced without a report
}

// A volume that is found while the node is fenced needs a fence of its storage too.
func TestVolumeFoundLateIsFenced(t *testing.T) {
	s := healthy(t)
	s.Ledger = append(s.Ledger, identity(other, "b", "10.0.0.3/32"))
	s.look().loseTainted().answer().hold(held("pv-2", other, "b")).look().wantObjects(fencedOf1, "Fenced [10.0.0.3/32] fence-"+other)
	s.wantReason(ReasonFencing).wantVolumes(2)
}

func TestSharedAddressStaysBlocked(t *testing.T) {
	returned := func(how func(*Other)) *story {
		s := fenced(t).boot("boot-2").taint(false).pass(time.Minute).beside(sharing("node-2", v1alpha1.NodeDrained, v1alpha1.FenceFenced))
		how(&s.Machines[0])
		return s.look()
	}
	waits := func(s *story) *story {
		s.Helper()
		return s.want(v1alpha1.NodeUnfencing, ReasonSharedAddress, keepsOut("node-2"))
	}
	for name, test := range map[string]struct {
		how   func(*Other)
		waits bool
	}{
		"fenced":                 {func(*Other) {}, true},
		"another cluster":        {func(o *Other) { o.Status.Fences[0].ClusterID = "b" }, true},
		"no cluster":             {func(o *Other) { o.Status.Fences[0].ClusterID = "" }, true},
		"another driver":         {func(o *Other) { o.Status.Fences[0].Driver = cephFS }, true},
		"returned":               {func(o *Other) { o.Status.Phase, o.Status.Reason = v1alpha1.NodeReturned, ReasonTainted }, true},
		"lost again":             {func(o *Other) { o.Status.Phase = v1alpha1.NodeLost }, true},
		"another address":        {func(o *Other) { o.Status.Fences[0].CIDRs = []string{"10.0.0.11/32"} }, false},
		"being unfenced":         {func(o *Other) { o.Status.Fences[0].State = v1alpha1.FenceUnfencing }, false},
		"requested, not created": {func(o *Other) { o.Status.Fences[0].State = v1alpha1.FenceRequested }, false},
		"requested after a release": {func(o *Other) {
			o.Status.Fences[0].State, o.Status.Fences[0].VolumesReleased = v1alpha1.FenceRequested, true
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if s := returned(test.how); test.waits {
				waits(s).wantObjects(deletingOf1) // it is recreated, Unfenced, when the other is unfenced
			} else {
				s.wantUnfencing()
			}
		})
	}
	// An override of this node does not count for the other.
	s := returned(func(*Other) {})
	theirs := s.Machines[0]
	waits(fenced(t).beside(theirs).override(GateUnfence).look()).wantHeld(false)
	s = returned(func(o *Other) { o.Status.Fences = nil })
	s.Fences[0].Unfenced = false
	waits(s.beside(theirs).look()).wantObjects(deletingOf1) // the other is lost while this node is unfenced
}

// A fence in effect is released though fencing is off by then.
func TestFenceIsReleasedThoughSwitchedOff(t *testing.T) {
	fenced(t).mode(ModeOff).boot("boot-2").taint(false).pass(time.Hour).look().wantObjects(unfencedOf1)
}

func TestStrayFenceOfEarlierBootIsUnfenced(t *testing.T) {
	stray := func(how func(*NetworkFence)) *story {
		n := object("node-1", "boot-0", v1alpha1.Fence{
			Name: fenceName("node-1", "old", rbd, "a"), Incident: "old", Driver: rbd, ClusterID: "a", Class: "fence-" + rbd, CIDRs: []string{"10.0.0.1/32"},
		}, false)
		how(&n)
		return healthy(t).objects(n).look()
	}
	s := stray(func(*NetworkFence) {})
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "a NetworkFence of an incident that is over blocks the node: unfencing the node")
	s.wantObjects(unfencedOf1)
	f := s.Status.Fences[0]
	s.wantThat(f.Driver == rbd && f.ClusterID == "a" && f.Incident == "old", "the fence is on record")
	s.answers(2).wantHealthy()
	for name, how := range map[string]func(*NetworkFence){
		"of this boot":    func(n *NetworkFence) { n.Labels[BootLabel] = "boot-1" },
		"of no boot":      func(n *NetworkFence) { delete(n.Labels, BootLabel) },
		"of another node": func(n *NetworkFence) { n.Labels[NodeLabel] = "node-11" },
		"another party's": func(n *NetworkFence) { n.Labels = nil },
	} {
		must.Equal(t, stray(how).Status.Phase, v1alpha1.NodeHealthy, name)
	}
	// An Unfenced object blocks nothing, and csi-addons unfences by it again whenever csi-addons starts.
	stray(func(n *NetworkFence) { n.Labels[BootLabel], n.Unfenced = "boot-1", true }).wantReason(ReasonUnfencing).answers(2).wantHealthy().wantObjects()
}

// The volume is attached to the node again, and the node is lost for a moment, within the grace period.
func TestGracePeriodSurvivesNextLoss(t *testing.T) {
	for name, lose := range map[string]func(*story){"not Ready": func(s *story) { s.lose() }, "deleted": func(s *story) { s.dropNode() }} {
		s := recordedLoss(t)
		attached := s.Holding
		s.hold().boot("boot-1").look()
		node := s.Node
		s.hold(attached...).look().do(lose).look().Node = node
		s.hold(attached...).pass(time.Minute).look().hold().look()
		got := s.attach()
		must.True(t, got != nil && got.Reason == ReasonStillMounted, "%s: the gate says %+v, and on record are %v", name, got, s.Status.Volumes)
	}
}
