package fencing

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/fairlead-io/fairlead/internal/config"
)

// FenceNodeChanged reports whether a Node changed in what fencing reads. Cordoning counts, since a drain mostly follows.
func FenceNodeChanged(was, is *corev1.Node) bool {
	return was.Spec.Unschedulable != is.Spec.Unschedulable || !reflect.DeepEqual(FenceNode(was), FenceNode(is)) || !slices.Equal(volumesInUse(was), volumesInUse(is))
}

// NodesByID names the nodes that may have a driver's node ID: those whose CSINode has it, and the node of that name.
func (r *FenceReader) NodesByID(ctx context.Context, driver, id string) ([]string, error) {
	var list storagev1.CSINodeList
	if err := r.objects.List(ctx, &list, r.by(driverNodeID, FenceHandle(driver, id))...); err != nil {
		return nil, fmt.Errorf("listing CSINodes: %w", err)
	}
	names := []string{id}
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver && d.NodeID == id }) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// AttachedNodes names the nodes that a PersistentVolume is attached to.
func (r *FenceReader) AttachedNodes(ctx context.Context, volume string) ([]string, error) {
	var list storagev1.VolumeAttachmentList
	if err := r.objects.List(ctx, &list, r.by(heldVolume, volume)...); err != nil {
		return nil, fmt.Errorf("listing VolumeAttachments: %w", err)
	}
	var names []string
	for i := range list.Items {
		if name := list.Items[i].Spec.Source.PersistentVolumeName; name != nil && *name == volume {
			names = append(names, list.Items[i].Spec.NodeName)
		}
	}
	return names, nil
}

// Within reports whether a namespace is that of a protected storage system.
func (r *FenceReader) Within(namespace string) bool {
	return slices.ContainsFunc(r.profiles(), func(p config.FencingProfile) bool { return p.Namespace == namespace })
}
