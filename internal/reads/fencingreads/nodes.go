package fencingreads

import (
	"context"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
)

// CordonedSince is when Kubernetes tainted a node because it is cordoned (v1.37: pkg/controller/util/node,
// SwapNodeControllerTaint); zero if the node is not cordoned.
func CordonedSince(node *corev1.Node) time.Time {
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			return t.TimeAdded.Time
		}
	}
	return time.Time{}
}

// FenceNodeChanged reports whether a Node changed in what fencing reads. Cordoning counts, since a drain mostly follows.
func FenceNodeChanged(was, is *corev1.Node) bool {
	return !CordonedSince(was).Equal(CordonedSince(is)) || !reflect.DeepEqual(FenceNode(was), FenceNode(is))
}

// NodesByID names the nodes that may have a driver's node ID: those whose CSINode has it, and the node of that name.
func (r *FenceReader) NodesByID(ctx context.Context, driver, id string) ([]string, error) {
	list, err := readAll(ctx, r.objects, &storagev1.CSINodeList{}, client.MatchingFields{driverNodeID: driverID(driver, id)})
	names := []string{id}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, err
}

// Within reports whether a namespace is that of a protected storage system.
func (r *FenceReader) Within(namespace string) bool {
	return slices.ContainsFunc(r.profiles(), func(p config.FencingProfile) bool { return p.Namespace == namespace })
}
