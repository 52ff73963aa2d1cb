package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

// What the webhook keeps of the objects that show who holds a volume: just that.

func slimNodeFence(object any) (any, error) {
	if n, ok := object.(*v1alpha1.NodeFence); ok {
		slim := &v1alpha1.NodeFence{ObjectMeta: named(n)}
		slim.Status.NodeName = NodeOfFence(n)
		for _, v := range n.Status.Volumes {
			slim.Status.Volumes = append(slim.Status.Volumes, v1alpha1.HeldVolume{PersistentVolume: v.PersistentVolume})
		}
		return slim, nil
	}
	return object, nil
}

func slimAttachmentOf(protected func(driver string) bool) func(any) (any, error) {
	return func(object any) (any, error) {
		if va, ok := object.(*storagev1.VolumeAttachment); ok {
			slim := &storagev1.VolumeAttachment{ObjectMeta: named(va)}
			if protected(va.Spec.Attacher) {
				slim.Spec.NodeName, slim.Spec.Source.PersistentVolumeName = va.Spec.NodeName, va.Spec.Source.PersistentVolumeName
			}
			return slim, nil
		}
		return object, nil
	}
}

func slimHolder(protected func(driver string) bool) func(any) (any, error) {
	return func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			slim := &corev1.Node{ObjectMeta: named(node)}
			names := volumesInUse(node)
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				if driver, _, ok := fence.ParseUniqueName(name); ok && protected(driver) {
					slim.Status.VolumesInUse = append(slim.Status.VolumesInUse, corev1.UniqueVolumeName(name))
				}
			}
			return slim, nil
		}
		return object, nil
	}
}

// named is no more of an object's metadata than a cache needs.
func named(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}
