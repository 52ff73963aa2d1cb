package reads

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
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
		DisabledV2: node.Labels[r.names.DisableV2Label] == "true",
		Ready:      nodeReady(node),
		Cordoned:   node.Spec.Unschedulable,
		Labels:     node.Labels,
		Taints:     node.Spec.Taints,
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

// priorityClasses returns the names of the priority classes, and the default class for pods without a class; "" if there is none.
func (r *Reader) priorityClasses(ctx context.Context) (names map[string]bool, byDefault string, err error) {
	var list schedulingv1.PriorityClassList
	if err := r.objects.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("listing PriorityClasses: %w", err)
	}
	names = make(map[string]bool, len(list.Items))
	var lowest int32
	for _, class := range list.Items {
		names[class.Name] = true
		// Of several default classes, the API server takes the lowest (k8s.io/kubernetes plugin/pkg/admission/priority).
		if class.GlobalDefault && (byDefault == "" || class.Value < lowest) {
			byDefault, lowest = class.Name, class.Value
		}
	}
	return names, byDefault, nil
}

// podClasses finds the class that a pod was created with. The API server writes the
// default class into pods without a class, so both kinds of pod look alike.
type podClasses struct {
	byDefault string
	// named: the setting in effect names the default class, so a pod with the default class matches the setting.
	named bool
}

func classesFor(byDefault string, values catalog.Values) podClasses {
	return podClasses{byDefault: byDefault, named: strings.TrimSpace(values[catalog.PriorityClass].Text) == byDefault}
}

func (c podClasses) built(class string) string {
	if class == c.byDefault && !c.named {
		return ""
	}
	return class
}
