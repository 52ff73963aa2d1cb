package cluster

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// withoutLostNodes counts a DaemonSet that is not Ready again, without its pods on nodes
// that are down. Such pods return with their nodes, and would delay a setting until then.
// The DaemonSet controller does not count pods that do not tolerate the nodes' taints: they
// are misscheduled (k8s.io/kubernetes pkg/controller/daemon NodeShouldRunDaemonPod).
//
// A pod without a node counts, although it may be waiting for a node that is down.
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
		case node != "" && !known: // the node is gone, and the DaemonSet does not count it
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
