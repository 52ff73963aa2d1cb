package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// request is what a pod requires of its node.
type request struct {
	// selector is a NodeSelectorTrait. tolerations are all tolerations of the pod.
	selector    string
	tolerations []corev1.Toleration
	// bound pods are created with a node name and bypass the scheduler.
	bound bool
	// milliCPU and hugepagesMiB of a bound pod.
	milliCPU, hugepagesMiB int64
	// ignoresCordon: like pods of DaemonSets.
	ignoresCordon bool
}

// refusal is why a node does not accept a pod.
type refusal struct {
	// excluded: the node selector does not match the node, perhaps on purpose.
	excluded bool
	why      string
}

// refusalOf returns why the node does not accept a pod, or nil. Requests of other pods on the node
// are not counted.
//
// Source: k8s.io/kubernetes pkg/kubelet/lifecycle/predicate.go for bound pods, of
// which ignore taints with effect NoSchedule; the scheduler's NodeAffinity, TaintToleration and
// NodeUnschedulable for others. The storage system creates no bound pod on a cordoned node:
// longhorn-manager controller/instance_manager_controller.go.
func refusalOf(n catalog.Node, r request) *refusal {
	if !n.Has(r.selector) {
		help := "label the node, or change "
		if strings.Contains(r.selector, corev1.LabelHostname+":") { // which another node has
			help = "change "
		}
		return &refusal{true, fmt.Sprintf("the node lacks the labels %q: %s%s", r.selector, help, catalog.SystemManagedNodeSelector)}
	}
	if taint := untolerated(n, r); taint != nil {
		return &refusal{why: fmt.Sprintf("the node has taint %s: remove the taint, or change %s", taint.ToString(), catalog.TaintToleration)}
	}
	switch {
	case n.Cordoned && !r.ignoresCordon:
		return &refusal{why: "the node is cordoned: uncordon the node"}
	case r.bound && n.AllocatableMilliCPU > 0 && r.milliCPU > n.AllocatableMilliCPU:
		return &refusal{why: fmt.Sprintf("the pod requests %s of CPU and the node has %s: reduce the request", catalog.MilliCPU(r.milliCPU), catalog.MilliCPU(n.AllocatableMilliCPU))}
	case r.bound && r.hugepagesMiB > n.AllocatableHugepagesMiB:
		return &refusal{why: fmt.Sprintf("the pod requests %d MiB of huge pages and the node has %d: add huge pages, or reduce the request", r.hugepagesMiB, n.AllocatableHugepagesMiB)}
	}
	return nil
}

// untolerated returns the first taint that the pod does not tolerate.
func untolerated(n catalog.Node, r request) *corev1.Taint {
	for i := range n.Taints {
		taint := &n.Taints[i]
		repels := taint.Effect == corev1.TaintEffectNoExecute || taint.Effect == corev1.TaintEffectNoSchedule && !r.bound
		if taint.Key == corev1.TaintNodeUnschedulable {
			continue // see Cordoned
		}
		if repels && !slices.ContainsFunc(r.tolerations, func(t corev1.Toleration) bool { return Tolerates(t, *taint) }) {
			return taint
		}
	}
	return nil
}

// Tolerates reports whether a toleration matches the taint, by any operator: a cluster that does not know Gt and Lt
// admits no such toleration.
func Tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	return t.ToleratesTaint(logr.Discard(), &taint, true)
}

// daemonSetTolerations are added by Kubernetes to every pod of a DaemonSet.
// Source: k8s.io/kubernetes pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations.
var daemonSetTolerations = []corev1.Toleration{
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeDiskPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodePIDPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
}
