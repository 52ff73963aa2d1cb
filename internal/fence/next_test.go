package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const (
	tellsHowToTaint = "; its volumes are held (pv-1). If it does not come back, shut it down and say so: kubectl taint nodes node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	stayingFenced   = "the node is gone and stays fenced; when you know that it never comes back: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=unfence: <why>'"
	fencedOf1       = "Fenced [10.0.0.1/32] fence-" + rbd
	unfencedOf1     = "Unfenced [10.0.0.1/32] fence-" + rbd
	deletingOf1     = "Deleting [10.0.0.1/32] fence-" + rbd
)

// From healthy to healthy, as an operator sees it.
func TestANodeIsLostAndComesBack(t *testing.T) {
	s := healthy(t)
	s.wantHeld(false)

	s.lose().look()
	s.want(v1alpha1.NodeLost, ReasonNotReady, "the node is not Ready"+tellsHowToTaint)
	s.wantHeld(true)
	s.wantObjects()

	s.Node.OutOfService = true
	s.Left = []string{"Pod default/db-0", "VolumeAttachment csi-1 of pv-1"}
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonFencing, "waiting for NetworkFence "+s.Fences[0].Name)
	s.wantObjects(fencedOf1)
	s.wantHeld(true)
	if !s.attach().Soon || s.step.Warning {
		t.Fatalf("all is well, and yet %+v", s.step)
	}
	s.csi()
	s.wantHeld(true) // confirmed, and not recorded

	s.answer()
	s.want(v1alpha1.NodeFenced, ReasonFenced, "the node is not Ready; fenced; still on it: Pod default/db-0, VolumeAttachment csi-1 of pv-1")
	s.wantHeld(false)

	s.Left, s.Holding = nil, nil
	s.look()
	s.wantDrained()
	s.wantHeld(false)
	if s.Status.VolumeCount != 1 {
		t.Fatal("what was on it is forgotten before it is back")
	}

	s.boot("boot-2").look()
	s.want(v1alpha1.NodeReturned, ReasonTainted, "the node has rebooted; to readmit the node: kubectl taint nodes node-1 node.kubernetes.io/out-of-service-")

	s.taint(false).look()
	s.want(v1alpha1.NodeReturned, ReasonSettling, "the node has rebooted; it is readmitted once it has been Ready for 1m0s")
	if s.step.After != time.Minute {
		t.Fatalf("it is looked at again in %s", s.step.After)
	}

	s.pass(time.Minute)
	s.OldAttachments = []string{"csi-1"}
	s.look()
	s.want(v1alpha1.NodeReturned, ReasonOldAttachments, "attachments from before the reboot remain: csi-1"+mayHaveThem)

	s.OldAttachments = nil
	s.look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")
	s.wantObjects(unfencedOf1)

	s.answer()
	s.wantObjects(deletingOf1)
	s.answer()
	s.wantHealthy()
	s.wantObjects()
	if s.Status.Incident != "" || s.Status.LostSince != nil || len(s.Status.Fences) > 0 || s.Status.Node.BootID != "boot-2" {
		t.Fatalf("something is left: %+v", s.Status)
	}
}

// A kubelet that was restarted after its volume was taken by force says of it what
// one says that has unmounted it: from a node that is not Ready, nothing is released
// on its word. The model's kubelets do both.
func TestVolumeThatLostNodeHidesIsHeld(t *testing.T) {
	s := recordedLoss(t)
	s.Holding = nil
	s.look()
	s.want(v1alpha1.NodeLost, ReasonNotReady, "the node is not Ready"+tellsHowToTaint)
	s.wantHeld(true)
}

func TestLostNodeWithoutVolumesIsNotFenced(t *testing.T) {
	for name, volumes := range map[string][]v1alpha1.HeldVolume{"none": nil, "not ours": {held("pv", "ebs.csi.aws.com", "")}} {
		s := lostStory(t)
		s.Holding, s.Status.Volumes = volumes, nil
		s.taint(true).look()
		s.want(v1alpha1.NodeLost, ReasonNothingHeld, "the node is not Ready; no protected volume is on it")
		if len(s.created) > 0 {
			t.Errorf("%s: fenced", name)
		}
	}
}

func TestTaintedReadyNodeIsNotFenced(t *testing.T) {
	s := healthy(t)
	s.Node.OutOfService = true
	s.Holding = nil // Kubernetes has taken them by force
	s.look()
	s.want(v1alpha1.NodeHealthy, ReasonTaintedButReady, "the node has the taint node.kubernetes.io/out-of-service but is Ready: a healthy node is not fenced, and its volumes are attached nowhere else; take the taint away, or shut the node down")
	s.wantHeld(true)
	s.wantObjects()
	if s.step.RemoveTaint || !s.step.Warning || s.Status.VolumeCount != 1 {
		t.Fatalf("got %+v", s.step)
	}
	s.lose().look()
	s.want(v1alpha1.NodeFencing, ReasonFencing, "waiting for NetworkFence "+s.Fences[0].Name)
}

// What Fairlead tainted, and came back before it was fenced.
func TestOwnTaintIsRemoved(t *testing.T) {
	s := recordedLoss(t)
	s.Node.OutOfService, s.Node.OwnTaint, s.Node.Ready = true, true, true
	s.look()
	if !s.step.RemoveTaint {
		t.Fatalf("got %+v", s.step)
	}
	s = fenced(t)
	s.Node.OwnTaint = true
	s.boot("boot-2")
	s.pass(time.Minute).look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")
	s.answers(2)
	if !s.step.RemoveTaint {
		t.Fatalf("got %+v", s.step)
	}
	s.Node.OutOfService, s.Node.OwnTaint = false, false
	s.look()
	s.wantHealthy()
}

func TestAutomaticReadmission(t *testing.T) {
	s := fenced(t)
	s.Policy.Automatic = true
	s.boot("boot-2").look()
	s.want(v1alpha1.NodeReturned, ReasonSettling, "the node has rebooted; it is readmitted once it has been Ready for 1m0s")
	s.pass(time.Minute).look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")
}

func TestRefusedFenceIsRequestedAgain(t *testing.T) {
	s := askedOnly(t)
	first := s.Fences[0].Name
	s.pass(time.Second)
	s.csiFails("no such pool").look()
	s.want(v1alpha1.NodeFencing, ReasonDriverFailed, rbd+" of a: no such pool (asked 1 times; it is asked again)")
	s.wantHeld(true)
	s.wantObjects(fencedOf1)
	if s.attach().Soon || s.step.After != 4*time.Second {
		t.Fatalf("it is looked at again in %s", s.step.After)
	}
	s.pass(4 * time.Second).look()
	s.wantObjects(deletingOf1)
	s.csiFails("").look()
	s.wantObjects(fencedOf1)
	if s.Fences[0].Name != first {
		t.Fatalf("asked as %s, and as %s", first, s.Fences[0].Name)
	}
	s.csiFails("still no such pool").look()
	s.want(v1alpha1.NodeFencing, ReasonDriverFailed, rbd+" of a: still no such pool (asked 2 times; it is asked again)")
	if s.step.After != 10*time.Second {
		t.Fatalf("it is looked at again in %s", s.step.After)
	}
	s.answer()
	s.wantDrained()
	s.wantHeld(false)
}

// Which NetworkFence has failed already follows from its UID: the times on it are by the
// API server's clock, which is not ours.
func TestEachFailureBacksOff(t *testing.T) {
	s := askedOnly(t)
	for failures := range 3 {
		s.csiFails("no such pool").look()
		if want := backoff(failures); len(s.deleted) > 0 || s.step.After != want {
			t.Fatalf("after %d failures, deleted %v; it is looked at again in %s, not %s", failures, s.deleted, s.step.After, want)
		}
		s.pass(backoff(failures)).look()
		if len(s.deleted) != 1 {
			t.Fatalf("after %d failures, it is not requested again", failures)
		}
		s.csiFails("").look()
	}
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 5 * time.Second, 1: 10 * time.Second, 4: 80 * time.Second, 5: 2 * time.Minute, 1000: 2 * time.Minute} {
		if got := backoff(failures); got != want {
			t.Errorf("%d: %s", failures, got)
		}
	}
}

func TestMissingAnswerIsReported(t *testing.T) {
	s := askedOnly(t)
	name := s.Fences[0].Name
	if s.step.After != 31*time.Second {
		t.Fatalf("it is looked at again in %s", s.step.After)
	}
	s.pass(31 * time.Second).look()
	s.want(v1alpha1.NodeFencing, ReasonUnanswered, "waiting for NetworkFence "+name+": csi-addons has not answered; is its controller manager running, and is the driver's leader connected?")
	s.wantWarning()
}

// A node that is Ready and untainted gets pods, and each mount fails.
func TestMissingAnswerToUnfencingIsReported(t *testing.T) {
	s := fenced(t)
	s.boot("boot-2")
	s.taint(false).look()
	s.pass(DefaultReadyFor).look()
	const comesIn = "unfencing the node"
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, comesIn)
	s.pass(unanswered).look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, comesIn)
	s.pass(time.Second).look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnanswered, "waiting for NetworkFence "+s.Fences[0].Name+": "+noAnswer)
	s.wantWarning()
	// It does what it is asked for, and does not let the object go.
	s.change(s.Fences[0].Name, func(n *NetworkFence) { n.Result, n.Message = resultSucceeded, unfencedMessage })
	s.look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, comesIn)
	s.wantObjects("Deleting [10.0.0.1/32] fence-" + rbd)
	s.pass(unanswered + time.Second).look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnanswered, "waiting for NetworkFence "+s.Fences[0].Name+": "+noAnswer)
	// Lost again, it waits for that object too.
	old := s.Fences[0].Name
	s.loseTainted()
	s.want(v1alpha1.NodeFencing, ReasonFencing, "not fenced: "+rbd+" of a: the earlier NetworkFence "+old+" would unblock the node and must be gone first: "+noAnswer)
	s.answers(2)
	if s.Status.Phase != v1alpha1.NodeDrained {
		t.Fatalf("it is %s: %s", s.Status.Phase, s.Status.Message)
	}
}

// A changed object is not what was asked for.
func TestChangedFenceIsRecreated(t *testing.T) {
	for name, how := range map[string]func(*NetworkFence){
		"flipped":       func(n *NetworkFence) { n.Unfenced = true },
		"other address": func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.9/32"} },
		"one more":      func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.1/32", "10.0.0.9/32"} },
		"none":          func(n *NetworkFence) { n.CIDRs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := fenced(t)
			s.change(s.Fences[0].Name, how)
			s.look()
			s.want(v1alpha1.NodeFencing, ReasonFencing, rbd+" of a: the NetworkFence was changed; Fairlead recreates it")
			s.wantHeld(true)
			if len(s.deleted) != 1 {
				t.Fatalf("deleted %v", s.deleted)
			}
			s.answer()
			s.wantObjects(fencedOf1)
			s.answer()
			s.wantHeld(false)
		})
	}
}

func TestDeletedNodeStaysFenced(t *testing.T) {
	s := healthy(t)
	s.Node = Node{Name: "node-1"}
	s.Ledger, s.Holding = nil, nil
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonFencing, "waiting for NetworkFence "+s.Fences[0].Name)
	s.answer()
	s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)
	s.wantHeld(false)
	s.pass(240 * time.Hour).look()
	s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)

	s.override(GateUnfence).look()
	s.want(v1alpha1.NodeUnfencing, ReasonOverridden, `unfencing the node: alice says "it is off"`)
	s.wantObjects(unfencedOf1)
	s.answers(2)
	s.wantForgotten()
}

// It is given up though an attachment of it is left, and not fenced by what is not known any more.
func TestDeletedNodeWithAttachmentIsGivenUp(t *testing.T) {
	s := healthy(t)
	s.Node, s.Ledger = Node{Name: "node-1"}, nil
	s.look()
	s.answer()
	s.override(GateUnfence).look()
	s.answers(2)
	given := `the node's object was deleted; it is not fenced, and its volumes are not held: alice says "it is off"`
	s.want(v1alpha1.NodeLost, ReasonOverridden, given)
	s.wantObjects()
	s.wantHeld(false)
	s.pass(time.Hour).look()
	s.want(v1alpha1.NodeLost, ReasonOverridden, given)
	s.Holding = nil
	s.look()
	s.wantForgotten()
}

func TestDeletedNodeWithoutVolumesIsForgotten(t *testing.T) {
	s := healthy(t)
	s.Holding = nil
	s.look()
	s.Node = Node{Name: "node-1"}
	s.look()
	s.wantForgotten()
}

func TestReplacedMachineIsFenced(t *testing.T) {
	s := healthy(t)
	s.take("machine-2", "192.168.1.2")
	s.look()
	s.want(v1alpha1.NodeFencing, ReasonFencing, "waiting for NetworkFence "+s.Fences[0].Name)
	s.wantObjects(fencedOf1)
	s.answer()
	s.want(v1alpha1.NodeDrained, ReasonReplaced, stayingFenced)
	s.wantHeld(false)

	s.override(GateUnfence).look()
	s.answers(2)
	s.wantForgotten()
}

// An operator answers for it: the volumes go though nothing is fenced.
func TestAttachOverrideReleasesVolumes(t *testing.T) {
	s := lostStory(t)
	s.Status.Identities = nil
	s.taint(true).look()
	s.wantHeld(true)
	s.override(GateAttach).look()
	s.want(v1alpha1.NodeFencing, ReasonOverridden, `its volumes may be attached elsewhere although it is not fenced: alice says "it is off"`)
	s.wantHeld(false)
	s.Override = Override{}
	s.look()
	s.wantHeld(true)
}

// What is unfenced by override and stays lost is not fenced again, nor held.
func TestUnfenceOverrideEndsWithReturn(t *testing.T) {
	s := fenced(t)
	s.override(GateUnfence).look()
	s.answers(2)
	s.want(v1alpha1.NodeLost, ReasonOverridden, `the node is not Ready; it is not fenced, and its volumes are not held: alice says "it is off"`)
	s.wantObjects()
	s.wantHeld(false)
	s.pass(time.Hour).look()
	s.want(v1alpha1.NodeLost, ReasonOverridden, `the node is not Ready; it is not fenced, and its volumes are not held: alice says "it is off"`)
	// It comes back, and is lost another time: that was not meant.
	s.Node.OutOfService = false
	s.boot("boot-1").look()
	s.wantHealthy()
	s.lose()
	s.Override = Override{} // it was of another incident
	s.taint(true).look()
	s.wantObjects(fencedOf1)
	s.wantHeld(true)
}

func TestLostAgainWhileReturned(t *testing.T) {
	s := fenced(t)
	first := s.Fences[0].Name
	s.boot("boot-2").look()
	s.want(v1alpha1.NodeReturned, ReasonTainted, "the node has rebooted; to readmit the node: kubectl taint nodes node-1 node.kubernetes.io/out-of-service-")
	s.lose().look()
	s.wantHeld(true) // the fence of before was of before
	if len(s.Fences) != 2 || s.Fences[1].Name == first {
		t.Fatalf("not fenced again: %+v", s.Fences)
	}
	s.answer()
	s.wantHeld(false)
	s.bootUntainted("boot-3")
	s.wantObjects(unfencedOf1, unfencedOf1)
	s.answers(2)
	s.wantHealthy()
	s.wantObjects()
}

// What lets it in must be gone before it is fenced again: csi-addons could do it afterwards.
func TestLostAgainWhileUnfencing(t *testing.T) {
	s := fenced(t)
	s.bootUntainted("boot-2")
	s.wantObjects(unfencedOf1)
	s.Holding = []v1alpha1.HeldVolume{held("pv-1", rbd, "a")}
	s.look()
	s.loseTainted()
	s.wantObjects(deletingOf1)
	s.wantHeld(true)
	if s.Status.Reason != ReasonFencing {
		t.Fatalf("%s: %s", s.Status.Reason, s.Status.Message)
	}
	s.answer()
	s.wantObjects(fencedOf1)
	s.answer()
	s.wantHeld(false)
	s.bootUntainted("boot-3")
	s.answers(3)
	s.wantHealthy()
	s.wantObjects()
}

func TestUnfencingIsRetriedUntilConfirmed(t *testing.T) {
	s := fenced(t)
	s.bootUntainted("boot-2")
	s.wantObjects(unfencedOf1)
	s.look()
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node") // the message is of before
	s.csiFails("no route").look()
	s.want(v1alpha1.NodeUnfencing, ReasonDriverFailed, rbd+" of a: no route")
	s.pass(5 * time.Second).look()
	s.wantObjects(deletingOf1)
	s.csiFails("").look()
	s.wantObjects(unfencedOf1)
	s.answers(2)
	s.wantHealthy()
}

// A NetworkFence that a user deleted leaves the address blocked.
func TestDeletedFenceIsUnfenced(t *testing.T) {
	s := fenced(t)
	s.Fences = nil
	s.bootUntainted("boot-2")
	s.wantObjects(unfencedOf1)
}

func TestChangedFenceIsRecreatedWhileUnfencing(t *testing.T) {
	s := fenced(t)
	s.bootUntainted("boot-2")
	s.change(s.Fences[0].Name, func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.9/32"} })
	s.Fences[0].Result, s.Fences[0].Message = resultSucceeded, unfencedMessage
	s.look()
	s.want(v1alpha1.NodeUnfencing, ReasonDriverFailed, rbd+" of a: the NetworkFence was changed; Fairlead recreates it")
	s.answer()
	s.wantObjects(unfencedOf1)
}

func TestUnansweredFenceIsWithdrawnAfterReboot(t *testing.T) {
	s := askedOnly(t)
	s.wantObjects(fencedOf1)
	s.boot("boot-2").look()
	s.want(v1alpha1.NodeReturned, ReasonTainted, "the node has rebooted; to readmit the node: kubectl taint nodes node-1 node.kubernetes.io/out-of-service-")
	s.wantObjects(deletingOf1)
	s.Fences = nil
	s.Node.OutOfService = false
	s.pass(time.Minute).look()
	s.wantObjects(unfencedOf1) // it may have been done
}

// A volume that comes up while the node is fenced needs its fence too.
func TestVolumeFoundLateIsFenced(t *testing.T) {
	s := healthy(t)
	s.Ledger = append(s.Ledger, identity(other, "b", "10.0.0.3/32"))
	s.look()
	s.loseTainted()
	s.answer()
	s.Holding = []v1alpha1.HeldVolume{held("pv-2", other, "b")}
	s.look()
	s.wantObjects(fencedOf1, "Fenced [10.0.0.3/32] fence-"+other)
	if s.Status.Phase != v1alpha1.NodeFencing || s.Status.VolumeCount != 2 {
		t.Fatalf("got %+v", s.Status)
	}
}

func TestSharedAddressStaysBlocked(t *testing.T) {
	theirs := v1alpha1.Fence{Name: "fairlead-node-2", Incident: "x", Driver: cephFS, ClusterID: "a", CIDRs: []string{"10.0.0.1/32"}, State: v1alpha1.FenceFenced}
	node2 := Other{Node: Node{Name: "node-2", Exists: true, OutOfService: true}, Status: v1alpha1.NodeFenceStatus{Phase: v1alpha1.NodeDrained, Fences: []v1alpha1.Fence{theirs}}}
	waits := "its address 10.0.0.1/32 also keeps out node node-2, which may not be readmitted yet; if that machine is known to be off: kubectl annotate --overwrite nodefence node-2 'fairlead.io/override-gate=unfence: <why>'"
	back := func() *story {
		s := fenced(t)
		s.boot("boot-2")
		s.Node.OutOfService = false
		s.pass(time.Minute)
		s.Others = []Other{node2}
		return s
	}
	s := back()
	s.look()
	s.want(v1alpha1.NodeUnfencing, ReasonSharedAddress, waits)
	s.wantObjects(deletingOf1) // it is recreated, Unfenced, when the other is unfenced

	for name, lets := range map[string]func(*Other){
		"it has another address":             func(o *Other) { o.Status.Fences[0].CIDRs = []string{"10.0.0.11/32"} },
		"it is unfenced too":                 func(o *Other) { o.Status.Fences[0].State = v1alpha1.FenceUnfencing },
		"it was asked for, and not made yet": func(o *Other) { o.Status.Fences[0].State = v1alpha1.FenceRequested },
	} {
		s := back()
		s.Others = []Other{{Node: node2.Node, Status: *node2.Status.DeepCopy()}}
		lets(&s.Others[0])
		s.look()
		if s.Status.Phase != v1alpha1.NodeUnfencing || s.Status.Reason != ReasonUnfencing {
			t.Errorf("%s: %s: %s", name, s.Status.Phase, s.Status.Message)
		}
	}
	for name, waits := range map[string]func(*Other){
		"its storage has another name":    func(o *Other) { o.Status.Fences[0].ClusterID = "b" },
		"its storage is not named":        func(o *Other) { o.Status.Fences[0].ClusterID = "" },
		"it is back, and waits for other": func(o *Other) { o.Status.Phase, o.Status.Reason = v1alpha1.NodeReturned, ReasonTainted },
		"it is lost another time":         func(o *Other) { o.Status.Phase = v1alpha1.NodeLost },
	} {
		s := back()
		s.Others = []Other{{Node: node2.Node, Status: *node2.Status.DeepCopy()}}
		waits(&s.Others[0])
		s.look()
		if s.Status.Reason != ReasonSharedAddress {
			t.Errorf("%s: %s: %s", name, s.Status.Phase, s.Status.Message)
		}
	}

	// An override of this node is none of the other.
	s = fenced(t)
	s.Others = []Other{node2}
	s.override(GateUnfence).look()
	s.want(v1alpha1.NodeUnfencing, ReasonSharedAddress, waits)
	s.wantHeld(false)
	s = back()
	s.Others = nil
	s.look()
	s.Fences[0].Unfenced = false
	s.Others = []Other{node2} // it was lost while this one began to come in
	s.look()
	s.want(v1alpha1.NodeUnfencing, ReasonSharedAddress, waits)
	s.wantObjects(deletingOf1)
}

// A fence in effect is released though fencing is off by then.
func TestFenceIsReleasedThoughSwitchedOff(t *testing.T) {
	s := fenced(t)
	s.Policy = with(s.Policy, StoragePolicy{Mode: ModeOff})
	s.boot("boot-2")
	s.Node.OutOfService = false
	s.pass(time.Hour).look()
	s.wantObjects(unfencedOf1)
}

func TestStrayFenceOfEarlierBootIsUnfenced(t *testing.T) {
	stray := func(how func(*NetworkFence)) *story {
		s := healthy(t)
		n := object("node-1", "boot-0", v1alpha1.Fence{
			Name: fenceName("node-1", "old", rbd, "a"), Incident: "old", Driver: rbd, ClusterID: "a", Class: "fence-" + rbd, CIDRs: []string{"10.0.0.1/32"},
		}, false)
		if how != nil {
			how(&n)
		}
		s.Fences = []NetworkFence{n}
		s.look()
		return s
	}
	s := stray(nil)
	s.want(v1alpha1.NodeUnfencing, ReasonUnfencing, "a NetworkFence of an incident that is over shuts the node out: unfencing the node")
	s.wantObjects(unfencedOf1)
	if f := s.Status.Fences[0]; f.Driver != rbd || f.ClusterID != "a" || f.Incident != "old" {
		t.Fatalf("got %+v", f)
	}
	s.answers(2)
	s.wantHealthy()
	for name, how := range map[string]func(*NetworkFence){
		"of this boot":    func(n *NetworkFence) { n.Labels[BootLabel] = "boot-1" },
		"of no boot":      func(n *NetworkFence) { delete(n.Labels, BootLabel) },
		"of another node": func(n *NetworkFence) { n.Labels[NodeLabel] = "node-11" },
		"another party's": func(n *NetworkFence) { n.Labels = nil },
	} {
		if s := stray(how); s.Status.Phase != v1alpha1.NodeHealthy {
			t.Errorf("%s: %s", name, s.Status.Message)
		}
	}
}

// It is attached to the node again, and lost with it for a moment, before it has ended.
func TestGracePeriodSurvivesNextLoss(t *testing.T) {
	for name, lose := range map[string]func(*story){
		"not Ready": func(s *story) { s.lose() },
		"deleted":   func(s *story) { s.Node = Node{Name: "node-1"} },
	} {
		s := recordedLoss(t)
		attached := s.Holding
		s.Holding = nil
		s.boot("boot-1").look()
		node := s.Node
		s.Holding = attached
		s.look()
		lose(s)
		s.look()
		s.Node, s.Holding = node, attached
		s.pass(time.Minute).look()
		s.Holding = nil
		s.look()
		if got := s.attach(); got == nil || got.Reason != ReasonStillMounted {
			t.Errorf("%s: the gate says %+v, and on record are %v", name, got, s.Status.Volumes)
		}
	}
}
