package fence

import (
	"net/netip"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A machine is gone and stays fenced, and its address goes to another, which Fairlead reports.
func TestTakenAddressOfGoneMachineIsReported(t *testing.T) {
	taken := func(who string) string {
		return "its address 10.0.0.1 is blocked, and is or was one of " + who + ", which the storage refuses with it; when you know that the old machine never comes back: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=unfence: <why>'"
	}
	node7 := Other{Node: Node{Name: "node-7", Exists: true, Ready: true, Addresses: []netip.Addr{addr("10.0.0.1")}}}
	s := fenced(t)
	s.Others = []Other{node7}
	s.look() // it may come back
	s.wantDrained()
	s.deleteNode().look()
	if s.want(v1alpha1.NodeDrained, ReasonAddressInUse, taken("node node-7")); !s.step.Warning {
		t.Error("no warning")
	}
	s.wantObjects(fencedOf1)
	s.wantHeld(false)
	s.Others[0].Node.Ready, s.Others[0].Node.OutOfService = false, true
	s.look()
	s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)
	s.Others = []Other{{Node: Node{Name: "node-7", Exists: true, Ready: true}, Status: v1alpha1.NodeFenceStatus{Identities: []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}}}}
	s.look()
	s.wantReason(ReasonAddressInUse)
	s.Others = nil
	s.look()
	s.want(v1alpha1.NodeDrained, ReasonNodeDeleted, stayingFenced)
	s.take("machine-2", "10.0.0.1")
	s.look()
	s.want(v1alpha1.NodeDrained, ReasonAddressInUse, taken("the machine that has the node's name now"))
}

func TestBlockedHealthyNodeIsReported(t *testing.T) {
	block := object("node-7", "boot-7", v1alpha1.Fence{Name: "theirs", Incident: "x", Driver: rbd, ClusterID: "a", CIDRs: []string{"10.0.0.1/32"}}, false)
	block.Result, block.Message = resultSucceeded, fencedMessage
	s := healthy(t)
	s.Fences = []NetworkFence{block}
	s.look()
	s.want(v1alpha1.NodeHealthy, ReasonAddressInUse, "the storage refuses the node: its address 10.0.0.1 is blocked by NetworkFence theirs, made for node node-7; see: kubectl describe nodefence node-7")
	if !s.step.Warning || s.step.After != lookForFences {
		t.Errorf("got %+v", s.step)
	}
	s.wantHeld(false)
	s.Others = []Other{{Record: "node-7-0a1b", Node: Node{Name: "node-7"}, Status: v1alpha1.NodeFenceStatus{Fences: []v1alpha1.Fence{{Name: "theirs"}}}}}
	s.look()
	s.want(v1alpha1.NodeHealthy, ReasonAddressInUse, "the storage refuses the node: its address 10.0.0.1 is blocked by NetworkFence theirs, made for node node-7; "+
		"when you know that the machine it was made for is off and stays off: kubectl annotate --overwrite nodefence node-7-0a1b 'fairlead.io/override-gate=unfence: <why>'")
	s.Others = nil
	for name, how := range map[string]func(*NetworkFence){
		"of another address": func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.11/32"} },
		"not confirmed":      func(n *NetworkFence) { n.Result, n.Message = "", "" },
		"that is taken back": func(n *NetworkFence) { n.Unfenced, n.Message = true, unfencedMessage },
	} {
		n := block
		n.Labels = map[string]string{NodeLabel: "node-7"}
		how(&n)
		s.Fences = []NetworkFence{n}
		s.look()
		if s.Status.Reason != ReasonReady {
			t.Errorf("one %s: %s", name, s.Status.Message)
		}
	}
}
