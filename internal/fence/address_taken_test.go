package fence

import (
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestTakenAddressOfGoneMachineIsReported(t *testing.T) {
	taken := func(who string) string {
		return "its address 10.0.0.1 is blocked, and is or was one of " + who + ", which the storage refuses with it; when you know that the old machine never comes back: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=unfence: <why>'"
	}
	s := fenced(t).beside(liveAt("machine-7", "10.0.0.1")).look().wantDrained() // the machine may come back
	s.deleteNode().look().want(v1alpha1.NodeDrained, ReasonAddressInUse, taken("node node-7")).wantWarning()
	s.wantObjects(fencedOf1).wantHeld(false)
	s.Machines[0].Node.Ready, s.Machines[0].Node.OutOfService = false, true
	s.look().wantGone()
	byRecord := liveAt("machine-7", "192.168.1.7")
	byRecord.Status.Identities = []v1alpha1.StorageIdentity{identity(rbd, "a", "10.0.0.1/32")}
	s.beside(byRecord).look().wantReason(ReasonAddressInUse).beside().look().wantGone().take("machine-2", "10.0.0.1").look()
	s.want(v1alpha1.NodeDrained, ReasonAddressInUse, taken("the machine that has the node's name now"))
}

func TestBlockedHealthyNodeIsReported(t *testing.T) {
	block := object("node-7", "boot-7", v1alpha1.Fence{Name: "theirs", Incident: "x", Driver: rbd, ClusterID: "a", CIDRs: []string{"10.0.0.1/32"}}, false)
	succeeded(&block)
	s := healthy(t).objects(block).look().want(v1alpha1.NodeHealthy, ReasonAddressInUse, "the storage refuses the node: its address 10.0.0.1 is blocked by NetworkFence theirs, made for node node-7; see: kubectl describe nodefence node-7")
	s.wantWarning().wantAfter(lookForFences).wantHeld(false)
	s.beside(Other{Record: "node-7-0a1b", Node: Node{Name: "node-7"}, Status: v1alpha1.NodeFenceStatus{Fences: []v1alpha1.Fence{{Name: "theirs"}}}}).look()
	s.want(v1alpha1.NodeHealthy, ReasonAddressInUse, "the storage refuses the node: its address 10.0.0.1 is blocked by NetworkFence theirs, made for node node-7; "+
		"when you know that the machine it was made for is off and stays off: kubectl annotate --overwrite nodefence node-7-0a1b 'fairlead.io/override-gate=unfence: <why>'")
	for name, test := range map[string]struct {
		how    func(*NetworkFence)
		reason string
	}{
		"of another address": {func(n *NetworkFence) { n.CIDRs = []string{"10.0.0.11/32"} }, ReasonReady},
		"not confirmed":      {func(n *NetworkFence) { n.Result, n.Message = "", "" }, ReasonReady},
		// As a drill says: a fence would be unblocked again.
		"that is taken back": {func(n *NetworkFence) { n.Unfenced, n.Message = true, unfencedMessage }, ReasonNotFenceable},
	} {
		n := block
		test.how(&n)
		must.True(t, s.beside().objects(n).look().Status.Reason == test.reason, "one %s: %s", name, s.Status.Message)
	}
}
