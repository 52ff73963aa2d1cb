package fences

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
)

// phaseUnknown is shown where the record says Healthy and the node is not Ready.
const phaseUnknown = "Unknown"

// CompareNodes corrects the views of nodes that are not Ready, and that no controller of Fairlead has recorded as lost: the
// records stay Healthy while none runs.
func CompareNodes(ctx context.Context, live client.Reader, views []View) error {
	notReady := map[string]bool{}
	err := lists.ForEach(ctx, lists.NewLive(live), &corev1.NodeList{}, func(n *corev1.Node) {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				notReady[n.Name] = true
			}
		}
	})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range views {
		if v := &views[i]; v.Phase == string(v1alpha1.NodeHealthy) && notReady[v.Node] {
			v.Phase, v.Reason, v.Message = phaseUnknown, "NotReady", "the node is not Ready, and no controller of Fairlead has recorded that: nothing fences the node"
			v.WaitsFor, v.Next, v.OnlyIf = "a controller of Fairlead", "fairlead check", ""
		}
	}
	return nil
}
