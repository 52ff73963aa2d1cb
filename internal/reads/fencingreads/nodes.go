package fencingreads

import (
	"context"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
)

// FenceNodeChanged reports whether a Node changed in what fencing reads.
func FenceNodeChanged(was, is *corev1.Node) bool {
	return !reflect.DeepEqual(FenceNode(was), FenceNode(is))
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
