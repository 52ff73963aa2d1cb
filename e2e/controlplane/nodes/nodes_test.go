package nodes

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNoTwoNodesShareAnAddress(t *testing.T) {
	seen := map[string]string{}
	for n := 1; n <= Max; n++ {
		node := build(n, "v1.37.2")
		for _, cidr := range node.Spec.PodCIDRs {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil || prefix != prefix.Masked() || !prefix.Addr().IsPrivate() {
				t.Fatalf("%s has pod range %s: %v", node.Name, cidr, err)
			}
			if other := seen[cidr]; other != "" {
				t.Fatalf("%s and %s have pod range %s", other, node.Name, cidr)
			}
			seen[cidr] = node.Name
		}
		for _, address := range node.Status.Addresses {
			if other := seen[address.Address]; other != "" {
				t.Fatalf("%s and %s have address %s", other, node.Name, address.Address)
			}
			seen[address.Address] = node.Name
		}
	}
}

func TestNodeWithInitialTaintIsNotReady(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	if !Ready(node) {
		t.Error("a node that says so is not Ready")
	}
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	if Ready(node) {
		t.Error("a tainted node is Ready")
	}
	node.Spec.Taints = nil
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	if Ready(node) {
		t.Error("a lost node is Ready")
	}
}
