package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// request is what a pod asks of its node.
type request struct {
	// selector is the NodeSelectorTrait, and tolerations are all that the pod has.
	selector    string
	tolerations []corev1.Toleration
	// bound pods come with their node's name and pass the scheduler by.
	bound bool
	// milliCPU and hugepagesMiB of a bound pod.
	milliCPU, hugepagesMiB int64
	// ignoresCordon, as pods of DaemonSets do.
	ignoresCordon bool
}

// refusal is why a node does not take a pod.
type refusal struct {
	// leftOut: the node selector does not want the node, which may be on purpose.
	leftOut bool
	why     string
}

// refusalOf returns why the node does not take a pod; nil if it does. What other pods
// of the node take of its CPU and huge pages is not counted.
//
// Source: k8s.io/kubernetes pkg/kubelet/lifecycle/predicate.go for bound pods, of
// which taints with effect NoSchedule keep none away; the scheduler's NodeAffinity,
// TaintToleration and NodeUnschedulable for others. The storage system creates no
// bound pod on a cordoned node: longhorn-manager controller/instance_manager_controller.go.
func refusalOf(n catalog.Node, r request) *refusal {
	if !n.Has(r.selector) {
		return &refusal{true, fmt.Sprintf("the node lacks the labels %q: label it", r.selector)}
	}
	if taint := untolerated(n, r); taint != nil {
		return &refusal{why: fmt.Sprintf("the node has taint %s: remove it, or change %s", taint.ToString(), catalog.TaintToleration)}
	}
	switch {
	case n.Cordoned && !r.ignoresCordon:
		return &refusal{why: "the node is cordoned: uncordon it"}
	case r.bound && n.AllocatableMilliCPU > 0 && r.milliCPU > n.AllocatableMilliCPU:
		return &refusal{why: fmt.Sprintf("it asks for %s of CPU and the node has %s: ask for less", catalog.MilliCPU(r.milliCPU), catalog.MilliCPU(n.AllocatableMilliCPU))}
	case r.bound && r.hugepagesMiB > n.AllocatableHugepagesMiB:
		return &refusal{why: fmt.Sprintf("it asks for %d MiB of huge pages and the node has %d: give it more, or ask for less", r.hugepagesMiB, n.AllocatableHugepagesMiB)}
	}
	return nil
}

// untolerated returns the first taint that keeps the pod away.
func untolerated(n catalog.Node, r request) *corev1.Taint {
	for i := range n.Taints {
		taint := &n.Taints[i]
		keepsAway := taint.Effect == corev1.TaintEffectNoExecute || taint.Effect == corev1.TaintEffectNoSchedule && !r.bound
		if taint.Key == corev1.TaintNodeUnschedulable {
			continue // that is the cordon
		}
		if keepsAway && !slices.ContainsFunc(r.tolerations, func(t corev1.Toleration) bool { return Tolerates(t, *taint) }) {
			return taint
		}
	}
	return nil
}

// Tolerates tells whether a toleration is for the taint. Source: k8s.io/api
// core/v1/toleration.go, whose ToleratesTaint logs.
func Tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	return (t.Effect == "" || t.Effect == taint.Effect) && (t.Key == "" || t.Key == taint.Key) &&
		(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value)
}

// ofDaemonSets are the tolerations that Kubernetes adds to every pod of a DaemonSet.
// Source: k8s.io/kubernetes pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations.
var ofDaemonSets = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}
