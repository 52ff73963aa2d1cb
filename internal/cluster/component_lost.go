package cluster

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// withoutLostNodes counts a DaemonSet anew that is not Ready, without its pods on
// nodes that are down: they come back with their nodes, and would keep a setting
// from being applied until then. A DaemonSet whose pods do not tolerate the taints
// of such nodes has them misscheduled and does not count them itself
// (k8s.io/kubernetes pkg/controller/daemon NodeShouldRunDaemonPod).
//
// Only pods that are seen on such a node are left out: one that has no node yet
// may be waited for in vain, but is.
func (r *Reader) withoutLostNodes(ctx context.Context, ds *appsv1.DaemonSet, c *catalog.Component) error {
	if ds.Status.ObservedGeneration < ds.Generation || ds.Status.NumberMisscheduled > 0 || ds.Spec.Selector == nil || len(ds.Spec.Selector.MatchLabels) == 0 {
		return nil
	}
	pods, err := r.pods(ctx, ds.Spec.Selector.MatchLabels)
	if err != nil {
		return err
	}
	nodes, err := r.Nodes(ctx)
	if err != nil {
		return err
	}
	lost, updated, waited := map[string]bool{}, map[string]bool{}, false
	for i := range pods {
		pod := &pods[i]
		if !metav1.IsControlledBy(pod, ds) {
			continue
		}
		node := pod.Spec.NodeName
		switch there, known := nodes[node]; {
		case node != "" && !known: // gone, and not counted
		case known && !there.Ready:
			lost[node] = true
		case pod.DeletionTimestamp == nil && Ready(pod) && pod.Labels[templateGenerationLabel] == ds.Annotations[appsv1.DeprecatedTemplateGeneration]:
			updated[node] = true
		default:
			waited = true
		}
	}
	if len(lost) == 0 {
		return nil
	}
	c.Total = max(0, c.Total-len(lost))
	c.Updated = min(len(updated), c.Total)
	c.Ready = !waited && len(updated) >= c.Total
	return nil
}
