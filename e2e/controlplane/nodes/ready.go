package nodes

import (
	corev1 "k8s.io/api/core/v1"
)

// Ready tells whether pods can be scheduled to the node: it says so itself, and
// the controller manager has taken away the taint that every new node has.
func Ready(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
