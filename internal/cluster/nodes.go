package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// nodes gathers the cluster's nodes, and says on which of them the storage system runs.
func (r *Reader) nodes(ctx context.Context) (catalog.Nodes, error) {
	var theirs longhorn.NodeList
	if err := r.listHere(ctx, &theirs, "nodes of the storage system"); err != nil {
		return nil, err
	}
	byName := make(map[string]*longhorn.Node, len(theirs.Items))
	for i := range theirs.Items {
		byName[theirs.Items[i].Name] = &theirs.Items[i]
	}
	nodes := catalog.Nodes{}
	err := lists.ForEach(ctx, r.objects, &corev1.NodeList{}, func(node *corev1.Node) {
		nodes[node.Name] = r.nodeOf(node, byName[node.Name])
	})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return nodes, nil
}

// hugepagesOf returns the node's allocatable memory in huge pages of 2 MiB; zero if not reported.
func hugepagesOf(node *corev1.Node) *resource.Quantity {
	pages := node.Status.Allocatable[longhorn.Hugepages]
	return &pages
}

// nodeOf joins a Node with the storage system's node object; theirs is nil where the storage system does not run.
func (r *Reader) nodeOf(node *corev1.Node, theirs *longhorn.Node) catalog.Node {
	n := catalog.Node{
		AllocatableMilliCPU: node.Status.Allocatable.Cpu().MilliValue(), AllocatableHugepagesMiB: hugepagesOf(node).Value() >> 20,
		DisabledV2: node.Labels[r.profile.DisableV2Label] == "true",
		Cordoned:   node.Spec.Unschedulable,
		Labels:     node.Labels,
		Taints:     node.Spec.Taints,
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			n.Ready = c.Status == corev1.ConditionTrue
		}
	}
	if theirs != nil {
		n.Storage, n.StorageDown, n.InstanceManagerMilliCPU = true, theirs.Down(), theirs.Spec.InstanceManagerCPURequest
	}
	return n
}

// BootID is the boot of a node, "" if the node is gone.
func (r *Reader) BootID(ctx context.Context, name string) (string, error) {
	var node corev1.Node
	if err := r.objects.Get(ctx, client.ObjectKey{Name: name}, &node); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading node %s: %w", name, err)
	}
	return node.Status.NodeInfo.BootID, nil
}

// NodeChanged reports whether a field of catalog.Node has changed. A kubelet
// writes its node's status every few minutes, mostly with other changes.
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
