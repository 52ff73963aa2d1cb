package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const sayTainted = "If it does not come back, shut it down and say so: kubectl taint nodes node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"

var (
	stayingFenced = "the node is gone and stays fenced; when you know that it never comes back: " + OverrideCommand(record1, GateUnfence)
	mayHaveThem   = "; if new pods keep them too, as a DaemonSet's do, the node may be readmitted with them, since it has rebooted: " + OverrideCommand(record1, GateUnfence)
)

// From healthy to healthy, as an operator sees it.
func TestLostNodeIsFencedAndReadmitted(t *testing.T) {
	s := lost(t).look().want(v1alpha1.NodeLost, ReasonNotReady, "the node is not Ready; its volumes are held (pv-1). "+sayTainted).wantHeld(true).wantObjects()
	s.Left = []string{"Pod default/db-0", "VolumeAttachment csi-1 of pv-1"}
	s.taint(true).look().wantFencing().wantObjects(fencedOf1).wantHeld(true)
	s.wantThat(s.attach().Soon && !s.step.Warning, "the fence is expected soon").csi().wantHeld(true) // confirmed, and not recorded
	s.look().want(v1alpha1.NodeFenced, ReasonFenced, "the node is not Ready; fenced; still on it: Pod default/db-0, VolumeAttachment csi-1 of pv-1").wantHeld(false)
	s.Left = nil
	s.hold().look().is(saysDrained).wantHeld(false).wantVolumes(1)

	s.boot("boot-2").want(v1alpha1.NodeReturned, ReasonTainted, "the node has rebooted; to readmit the node: kubectl taint nodes node-1 node.kubernetes.io/out-of-service-").wantVolumes(0)
	s.taint(false).look().want(v1alpha1.NodeReturned, ReasonSettling, "the node has rebooted; it is readmitted once it has been Ready for 1m0s").wantAfter(time.Minute)
	s.OldAttachments = []string{"csi-1"}
	s.pass(time.Minute).look().want(v1alpha1.NodeReturned, ReasonOldAttachments, "attachments from before the reboot remain: csi-1"+mayHaveThem)
	s.OldPods = []string{"default/agent-x", "apps/agent-y"} // Kubernetes keeps the volumes of pods that tolerate the taint
	s.look().want(v1alpha1.NodeReturned, ReasonOldAttachments, "attachments from before the reboot remain: csi-1; pods from before the reboot keep them (default/agent-x, apps/agent-y): kubectl cordon node-1; kubectl delete pod -n default agent-x"+mayHaveThem)
	s.OldAttachments, s.OldPods = nil, nil
	s.look().is(saysUnfencing).wantObjects(unfencedOf1).answer().wantObjects(deletingOf1).answer().wantObjects().wantForgotten()
	s.follow().is(saysHealthy).wantThat(s.Spec.Boot.BootID == "boot-2" && s.Spec.LostSince == nil && !InIncident(s.Spec), "the new boot has a record, and is in no incident")
}

func TestLostNode(t *testing.T) {
	shared := held("pv-2", rbd, "a")
	shared.Shared = true
	const nothing = "the node is not Ready; no protected volume is on it"
	tales(t, healthy, map[string]tale[string]{
		"a shared file system is held once the node is tainted":        {func(s *story) { s.hold(held("pv-1", rbd, "a"), shared).lose().look() }, "the node is not Ready; its volumes are held (pv-1). " + sayTainted},
		"only shared file systems are on it":                           {func(s *story) { s.hold(shared).look().lose().look() }, "the node is not Ready; shared file systems are on it (pv-2), which are held once it is tainted. " + sayTainted},
		"a restarted kubelet does not list what was detached by force": {func(s *story) { s.lose().look().hold().look() }, "the node is not Ready; its volumes are held (pv-1). " + sayTainted},
		"without volumes it is not fenced":                             {func(s *story) { s.hold().look().loseTainted() }, nothing},
		"volumes of other drivers don't count":                         {func(s *story) { s.hold(held("pv", "ebs.csi.aws.com", "")).look().loseTainted() }, nothing},
	}, func(s *story, says string) { s.want(v1alpha1.NodeLost, s.Status.Reason, says).wantObjects() })
}

// The node is Ready again before a fence is requested, before it is confirmed, or after that.
func TestOwnTaintIsRemoved(t *testing.T) {
	removes := func(s *story) { t.Helper(); s.wantThat(s.step.RemoveTaint, "Fairlead removes its taint") }
	recordedLoss(t).ownTaint().comeBack().look().do(removes)
	requested(t).ownTaint().comeBack().look().do(removes)
	fenced(t).bootUntainted("boot-2").answer().answer().wantForgotten().ownTaint().follow().do(removes).taint(false).look().is(saysHealthy)
}

func TestReadmission(t *testing.T) {
	automatic := func(s *story) { s.Policy.Automatic = true }
	rebooted := func(t *testing.T) *story { return fenced(t).boot("boot-2") }
	tales(t, rebooted, map[string]tale[string]{ // what it waits for; "": it is unfenced
		"untainted":                             {func(s *story) { s.taint(false) }, ""},
		"tainted by a person":                   {func(*story) {}, ReasonTainted},
		"tainted, and readmission is automatic": {automatic, ""},
		"tainted by Fairlead":                   {func(s *story) { s.ownTaint() }, ""},
		"tainted by Fairlead and a person":      {func(s *story) { s.ownTaint().Node.OthersTaint = true }, ReasonTainted},
		"a person says that it may be unfenced": {func(s *story) { s.request(GateUnfence) }, ""},
		"not Ready":                             {func(s *story) { s.taint(false).lose() }, ReasonNotReady},
		"fencing is switched off by then":       {func(s *story) { s.mode(ModeOff).taint(false) }, ""},
	}, func(s *story, waits string) {
		if s.look().wantHeld(false).pass(DefaultReadyFor).look(); waits != "" {
			s.wantPhase(v1alpha1.NodeReturned, waits).wantObjects(fencedOf1)
		} else {
			s.wantPhase(v1alpha1.NodeUnfencing, s.Status.Reason).wantObjects(unfencedOf1)
		}
	})
}

// The taint goes last: pods on an untainted node that is still blocked could not mount anything.
func TestOwnTaintStaysUntilTheNodeIsUnfenced(t *testing.T) {
	s := fenced(t).ownTaint().boot("boot-2").wantObjects(fencedOf1).follow()
	s.wantThat(!s.step.RemoveTaint, "the taint stays while a fence of the earlier boot blocks the node")
}

func TestRefusedFenceIsRequestedAgain(t *testing.T) {
	s := requested(t)
	first := s.Fences[0].Name
	s.pass(time.Second).csiFails("no such pool").look()
	s.want(v1alpha1.NodeFencing, ReasonDriverFailed, rbd+" of a: no such pool (failed 1 times; Fairlead retries)")
	s.wantHeld(true).wantObjects(fencedOf1).wantAfter(4 * time.Second).pass(4 * time.Second).look().wantObjects(deletingOf1).csiFails("").look().wantObjects(fencedOf1)
	s.wantThat(s.Fences[0].Name == first, "the name stays "+first).csiFails("still no such pool").look().want(v1alpha1.NodeFencing, ReasonDriverFailed, rbd+" of a: still no such pool (failed 2 times; Fairlead retries)")
	s.wantAfter(10 * time.Second).answer().is(saysDrained).wantHeld(false)
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 5 * time.Second, 1: 10 * time.Second, 4: 80 * time.Second, 5: 2 * time.Minute, 1000: 2 * time.Minute} {
		must.Equal(t, backoff(failures), want, "after %d failures", failures)
	}
}

func TestMissingAnswerIsReported(t *testing.T) {
	s := requested(t).wantAfter(31 * time.Second).pass(31 * time.Second).look()
	s.want(v1alpha1.NodeFencing, ReasonUnanswered, "waiting for NetworkFence "+s.Fences[0].Name+": "+noAnswer).wantWarning()
	// A node that is Ready and untainted gets pods, and each mount fails.
	s = fenced(t).bootUntainted("boot-2").is(saysUnfencing).pass(unanswered).look().is(saysUnfencing).pass(time.Second).look()
	unanswered := "waiting for NetworkFence " + s.Fences[0].Name + ": " + noAnswer
	s.want(v1alpha1.NodeUnfencing, ReasonUnanswered, unanswered).wantWarning()
	// csi-addons unfences, and the object stays.
	s.changeFirst(func(n *NetworkFence) { n.Result, n.Message = resultSucceeded, unfencedMessage }).look()
	s.is(saysUnfencing).wantObjects(deletingOf1).pass(31*time.Second).look().want(v1alpha1.NodeUnfencing, ReasonUnanswered, unanswered)
	// The node is lost again: the fence of the new boot waits for the old object.
	s.follow().hold(held("pv-1", rbd, "a")).look().loseTainted().wantHeld(true).wantObjects(deletingOf1)
	s.answer().answer().is(saysDrained).wantHeld(false)
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
			s.wantHeld(true).wantThat(len(s.deleted) == 1, "the NetworkFence is deleted").answer().wantObjects(fencedOf1).answer().wantHeld(false)
		})
	}
	s := fenced(t).bootUntainted("boot-2").changeFirst(func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.9/32"} })
	s.Fences[0].Result, s.Fences[0].Message = resultSucceeded, unfencedMessage
	s.look().want(v1alpha1.NodeUnfencing, ReasonDriverFailed, rbd+" of a: the NetworkFence was changed; Fairlead recreates it").answer().wantObjects(unfencedOf1)
}

func TestDeletedNode(t *testing.T) {
	const unless = "the node's object was deleted; its volumes are held (pv-1), and it is fenced unless it registers again within 40s"
	t.Run("stays fenced", func(t *testing.T) {
		s := healthy(t).deleteNode().look().wantFencing().answer().is(saysGone).wantHeld(false).pass(240 * time.Hour).look().is(saysGone)
		s.act(GateUnfence).want(v1alpha1.NodeUnfencing, ReasonUnfencing, `unfencing the node: alice says "it is off"`).wantObjects(unfencedOf1).answer().answer().wantForgotten()
	})
	// kubectl delete node, or a cloud controller that can't reach its API: the machine may be well.
	t.Run("is not fenced at once", func(t *testing.T) {
		s := healthy(t).drop().look().want(v1alpha1.NodeLost, ReasonNodeDeleted, unless).wantHeld(true).wantObjects().wantAfter(deletedFor)
		s.pass(deletedFor-time.Second).look().want(v1alpha1.NodeLost, ReasonNodeDeleted, unless).wantObjects().wantAfter(time.Second)
		s.register("boot-1").look().wantPhase(v1alpha1.NodeHealthy, ReasonStillMounted).wantObjects()
	})
	t.Run("with an attachment is given up, and not fenced again", func(t *testing.T) {
		const given = `the node's object was deleted; it is not fenced, and its volumes are not held: alice says "it is off"`
		s := healthy(t).dropNode().look().answer().act(GateUnfence).answer().answer().want(v1alpha1.NodeLost, ReasonOverridden, given).wantObjects().wantHeld(false)
		s.pass(time.Hour).look().want(v1alpha1.NodeLost, ReasonOverridden, given).hold().look().wantForgotten()
	})
	t.Run("without volumes is forgotten", func(t *testing.T) { healthy(t).hold().look().dropNode().look().wantForgotten() })
}

func TestReplacedMachineIsFenced(t *testing.T) {
	s := healthy(t).drop().look().replace("machine-2", "192.168.1.2").look().wantFencing().wantObjects(fencedOf1).wantHeld(true)
	s.answer().want(v1alpha1.NodeDrained, ReasonReplaced, stayingFenced).wantHeld(false).act(GateUnfence).answer().answer().wantForgotten()
}

func TestLostAgainWhileReturned(t *testing.T) {
	t.Run("and still tainted", func(t *testing.T) {
		fenced(t).boot("boot-2").follow().hold(held("pv-1", rbd, "a")).look().lose().look().wantHeld(true).wantObjects(fencedOf1, fencedOf1).answer().wantHeld(false)
	})
	s := fenced(t).boot("boot-2").follow().hold(held("pv-1", rbd, "a")).taint(false).look().loseTainted()
	s.wantHeld(true).wantObjects(fencedOf1, fencedOf1).wantThat(s.Fences[0].Name != s.Fences[1].Name, "the second boot has a fence of its own")
	s.answer().wantHeld(false).bootUntainted("boot-3").withdraw().wantForgotten()
	must.Equal(t, len(s.rest), 1, "records that are left")
	s.follow().is(saysHealthy)
}

func TestUnfencing(t *testing.T) {
	s := fenced(t).bootUntainted("boot-2").wantObjects(unfencedOf1).csiFails("no route").look().want(v1alpha1.NodeUnfencing, ReasonDriverFailed, rbd+" of a: no route")
	s.pass(5 * time.Second).look().wantObjects(deletingOf1).csiFails("").look().wantObjects(unfencedOf1)
	// A command that timed out may still run, and block the node for good.
	s.answer().want(v1alpha1.NodeUnfencing, ReasonUnfencing, rbd+" of a: unfenced, and asked once more 5m0s after the last failure, since a command that timed out may still run").wantObjects(unfencedOf1)
	s.pass(lateWithin).look().wantObjects(deletingOf1).csiFails("").look().wantObjects(unfencedOf1).answer().answer().wantForgotten()
	// A NetworkFence that a user deleted leaves the address blocked.
	fenced(t).objects().bootUntainted("boot-2").wantObjects(unfencedOf1)
	// csi-addons may have fenced without a report, so an unanswered fence is unfenced too, at once.
	requested(t).boot("boot-2").is(saysUnfencing).wantObjects(unfencedOf1).withdraw().wantForgotten()
}

// A volume that is found while the node is fenced needs a fence of its storage too.
func TestVolumeFoundLateIsFenced(t *testing.T) {
	s := healthy(t)
	s.report(append(s.Ledger, identity(other, "b", "10.0.0.3/32"))...).look().loseTainted().answer()
	s.hold(held("pv-2", other, "b")).look().wantObjects(fencedOf1, "Fenced [10.0.0.3/32] fence-"+other).wantReason(ReasonFencing).wantVolumes(2)
}

// keepsOut is what node-1 says while a node that shares its address is fenced.
var keepsOut = "its address 10.0.0.1/32 also keeps out node node-2, which may not be readmitted yet; if that machine is known to be off: " + OverrideCommand("node-2", GateUnfence)

func TestSharedAddressStaysBlocked(t *testing.T) {
	returned := func(t *testing.T, how func(*v1alpha1.Fence)) *story {
		theirs := sharing("node-2", v1alpha1.FenceFenced)
		how(&theirs.Spec.Fences[0])
		return fenced(t).beside(theirs).bootUntainted("boot-2")
	}
	for name, test := range map[string]struct {
		how   func(*v1alpha1.Fence)
		waits bool
	}{
		"fenced":                 {func(*v1alpha1.Fence) {}, true},
		"another cluster":        {func(r *v1alpha1.Fence) { r.ClusterID = "b" }, true},
		"no cluster":             {func(r *v1alpha1.Fence) { r.ClusterID = "" }, true},
		"another driver":         {func(r *v1alpha1.Fence) { r.Driver = cephFS }, true},
		"another address":        {func(r *v1alpha1.Fence) { r.CIDRs = []string{"10.0.0.11/32"} }, false},
		"being unfenced":         {func(r *v1alpha1.Fence) { r.State = v1alpha1.FenceUnfencing }, false},
		"requested, not created": {func(r *v1alpha1.Fence) { r.State = v1alpha1.FenceRequested }, false},
		"requested after a release": {func(r *v1alpha1.Fence) {
			r.State, r.VolumesReleased = v1alpha1.FenceRequested, true
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if s := returned(t, test.how); test.waits {
				s.want(v1alpha1.NodeUnfencing, ReasonSharedAddress, keepsOut).wantObjects(deletingOf1) // it is recreated, Unfenced, when the other is unfenced
			} else {
				s.is(saysUnfencing)
			}
		})
	}
	// An act on this node does not count for the other.
	fenced(t).beside(sharing("node-2", v1alpha1.FenceFenced)).act(GateUnfence).want(v1alpha1.NodeUnfencing, ReasonSharedAddress, keepsOut).wantHeld(false)
	// The other is lost while this node is unfenced. Its own NetworkFence stays until the other has noticed.
	s := fenced(t).bootUntainted("boot-2").beside(sharing("node-2", v1alpha1.FenceFenced)).look().wantObjects(unfencedOf1)
	s.beside(sharing("node-2", v1alpha1.FenceUnfencing)).answer().wantObjects(deletingOf1)
}

// The storage refuses a live node that has an address of a machine that stays fenced.
func TestTakenAddressOfGoneMachineIsReported(t *testing.T) {
	taken := func(who string) string {
		return "its address 10.0.0.1 is blocked, and is or was one of " + who + ", which the storage refuses with it; when you know that the old machine never comes back: " + OverrideCommand(record1, GateUnfence)
	}
	s := fenced(t).beside(liveAt("10.0.0.1")).look().is(saysDrained) // the machine may come back
	s.deleteNode().look().want(v1alpha1.NodeDrained, ReasonAddressInUse, taken("node node-7")).wantWarning().wantObjects(fencedOf1).wantHeld(false)
	s.neighbours[0].Node.Ready, s.neighbours[0].Node.OutOfService = false, true
	s.look().is(saysGone)
	byRecord := liveAt("192.168.1.7")
	byRecord.Spec.Identities = list(identity(rbd, "a", "10.0.0.1/32"))
	s.beside(byRecord).look().wantReason(ReasonAddressInUse).beside().look().is(saysGone)
	s.replace("machine-2", "10.0.0.1").look().want(v1alpha1.NodeDrained, ReasonAddressInUse, taken("the machine that has the node's name now"))
}

func TestBlockedHealthyNodeIsReported(t *testing.T) {
	const blocked = "the storage refuses the node: its address 10.0.0.1 is blocked by NetworkFence theirs, made for node node-7; "
	theirs := NetworkFence{Name: "theirs", Labels: map[string]string{NodeLabel: "node-7"}, CIDRs: []string{"10.0.0.1/32"}}
	succeeded(&theirs)
	onRecord := Other{Record: "node-7-0a1b", Node: Node{Name: "node-7"}, Spec: v1alpha1.NodeFenceSpec{Fences: []v1alpha1.Fence{{Name: "theirs"}}}}
	for name, test := range map[string]struct {
		how          func(*NetworkFence)
		beside       []Other
		reason, says string
	}{
		"of another node":     {func(*NetworkFence) {}, nil, ReasonAddressInUse, blocked + "see: kubectl get nodefences -l fairlead.io/node=node-7"},
		"on a record":         {func(*NetworkFence) {}, []Other{onRecord}, ReasonAddressInUse, blocked + "when you know that the machine it was made for is off and stays off: " + OverrideCommand("node-7-0a1b", GateUnfence)},
		"of another address":  {func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.11/32"} }, nil, ReasonReady, ""},
		"not confirmed":       {func(n *NetworkFence) { n.Result, n.Message = "", "" }, nil, ReasonReady, ""},
		"that is taken back":  {func(n *NetworkFence) { n.Unfenced, n.Message = true, unfencedMessage }, nil, ReasonNotFenceable, ""}, // as a drill says
		"of a foreign driver": {func(n *NetworkFence) { n.Driver = "block.csi.ibm.com" }, nil, ReasonReady, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := theirs
			test.how(&n)
			s := healthy(t).beside(test.beside...).objects(n).look().wantPhase(v1alpha1.NodeHealthy, test.reason)
			if test.says != "" {
				s.want(v1alpha1.NodeHealthy, test.reason, test.says).wantWarning().wantAfter(lookForFences)
			}
		})
	}
}

// What people released may have two writers once the node is Ready in the same boot.
func TestReleasedNodeThatReturnsHasOldMounts(t *testing.T) {
	back := func(s *story) { s.act(GateAttach).comeBack().look() }
	type says struct {
		reason string
		warned bool
	}
	tales(t, recordedLoss, map[string]tale[says]{
		"Ready again":                    {back, says{ReasonOldMounts, true}},
		"a moment before its grace ends": {func(s *story) { back(s); s.pass(endsWithin - time.Second).look() }, says{ReasonOldMounts, true}},
		"after its grace":                {func(s *story) { back(s); s.pass(endsWithin).look() }, says{ReasonReady, false}},
		"Ready again, then tainted":      {func(s *story) { back(s); s.taint(true).look() }, says{ReasonTaintedButReady, true}},
		"Ready again, and tainted": {func(s *story) {
			s.act(GateAttach).Spec.Identities = nil
			s.taint(true).look().comeBack().report().look()
		}, says{ReasonTaintedButReady, true}},
		"its fence was never answered": {func(s *story) { s.act(GateAttach).taint(true).look().comeBack().look() }, says{ReasonOldMounts, true}},
		"nothing was released":         {func(s *story) { s.comeBack().look() }, says{ReasonStillMounted, false}},
	}, func(s *story, want says) {
		text := s.Status.Message
		s.wantThat(strings.Contains(text, "they may have two writers") == want.warned, "it warns of two writers: "+text)
		s.wantThat(!want.warned || !strings.Contains(text, "nowhere else"), "it does not say that its volumes are nowhere else: "+text)
		must.Equal(s, s.Status.Reason, want.reason)
	})
}
