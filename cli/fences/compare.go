package fences

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// phaseUnknown is shown where the record says Healthy, the node is lost, and no controller of Fairlead has recorded that.
const (
	phaseUnknown      = "Unknown"
	reasonNotRecorded = "NotRecorded"
)

// CompareNodes corrects the views of lost nodes while no controller of Fairlead leads: their records are old, and the first
// thing to do is to bring a controller back.
func CompareNodes(ctx context.Context, live client.Reader, views []View) error {
	for i := range views {
		if v := &views[i]; v.IsLost() && v.Phase != string(v1alpha1.NodeHealthy) {
			v.Message = "no controller of Fairlead leads, so nothing goes on. It was recorded last: " + v.Message
			v.waitForController()
		}
	}
	nodes := map[string]fence.Node{}
	err := lists.ForEach(ctx, lists.NewLive(live), &corev1.NodeList{}, func(n *corev1.Node) { nodes[n.Name] = fencingreads.FenceNode(n) })
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	for i := range views {
		v := &views[i]
		if lost := v.lostNow(nodes[v.Node]); lost != "" && v.Phase == string(v1alpha1.NodeHealthy) {
			v.Phase, v.Reason, v.Message = phaseUnknown, reasonNotRecorded, fence.Linked(lost+", and no controller of Fairlead has recorded that: nothing fences the node", reasonNotRecorded)
			v.waitForController()
		}
	}
	slices.SortFunc(views, View.before)
	return nil
}

func (v *View) waitForController() {
	v.WaitsFor, v.Next, v.OnlyIf = "a controller of Fairlead", "fairlead check", ""
}

// lostNow says why the machine of the record is lost; "" if it is not.
func (v View) lostNow(n fence.Node) string {
	switch {
	case !n.Exists:
		return "the Node was deleted"
	case v.boot != n.Boot:
		return "the Node shows another boot"
	case !n.Ready:
		return "the node is not Ready"
	}
	return ""
}
