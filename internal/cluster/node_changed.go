package cluster

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// NodeChanged tells whether anything changed that Nodes gathers. A kubelet
// writes its node's status every few minutes, mostly with other things.
func NodeChanged(was, is *corev1.Node) bool {
	return was.Spec.Unschedulable != is.Spec.Unschedulable || !maps.Equal(was.Labels, is.Labels) ||
		!slices.EqualFunc(was.Spec.Taints, is.Spec.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }) ||
		!was.Status.Allocatable.Cpu().Equal(*is.Status.Allocatable.Cpu()) || !hugepagesOf(was).Equal(*hugepagesOf(is)) || nodeReady(was) != nodeReady(is)
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
