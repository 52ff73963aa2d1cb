package caches

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// SlimNode drops images and most metadata, which are most of a node.
func SlimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	slim := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, CreationTimestamp: node.CreationTimestamp,
			Labels: node.Labels, Annotations: kept(node.Annotations, taint.NoTaintAnnotation, fence.RecordedLossAnnotation),
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{
			NodeInfo:  corev1.NodeSystemInfo{BootID: node.Status.NodeInfo.BootID, SystemUUID: node.Status.NodeInfo.SystemUUID},
			Addresses: node.Status.Addresses, VolumesInUse: node.Status.VolumesInUse,
		},
	}
	for _, a := range node.Status.VolumesAttached {
		if i := slices.Index(slim.Status.VolumesInUse, a.Name); i >= 0 {
			a.Name = slim.Status.VolumesInUse[i] // one text, not two
		}
		slim.Status.VolumesAttached = append(slim.Status.VolumesAttached, corev1.AttachedVolume{Name: a.Name})
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, longhorn.Hugepages} {
		if amount, ok := node.Status.Allocatable[name]; ok {
			if slim.Status.Allocatable == nil {
				slim.Status.Allocatable = corev1.ResourceList{}
			}
			slim.Status.Allocatable[name] = amount
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			// Without the heartbeat, which changes by the minute.
			slim.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	return slim, nil
}

// slimCSINode keeps the drivers' IDs of a node.
func slimCSINode(object any) (any, error) {
	n, ok := object.(*storagev1.CSINode)
	if !ok {
		return object, nil
	}
	slim := &storagev1.CSINode{ObjectMeta: slimMeta(n)}
	for _, d := range n.Spec.Drivers {
		slim.Spec.Drivers = append(slim.Spec.Drivers, storagev1.CSINodeDriver{Name: d.Name, NodeID: d.NodeID})
	}
	return slim, nil
}

// commonRecord keeps a whole NodeFence; texts that many of them share use the same memory.
func commonRecord(object any) (any, error) {
	if n, ok := object.(*v1alpha1.NodeFence); ok {
		n.ManagedFields, n.Spec.Volumes = nil, slices.Clone(n.Spec.Volumes) // JSON leaves room for more
		for i := range n.Spec.Volumes {
			v := &n.Spec.Volumes[i]
			v.Driver, v.ClusterID = common(v.Driver), common(v.ClusterID)
		}
	}
	return object, nil
}

func slimPriorityClass(object any) (any, error) {
	if class, ok := object.(*schedulingv1.PriorityClass); ok {
		return &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: class.Name, UID: class.UID, ResourceVersion: class.ResourceVersion},
			Value:      class.Value, GlobalDefault: class.GlobalDefault,
		}, nil
	}
	return object, nil
}

// slimObject drops metadata that no rule reads. The storage system has several
// objects for each volume.
func slimObject(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
		o.SetLabels(nil)
		o.SetAnnotations(nil)
		o.SetOwnerReferences(nil)
		o.SetFinalizers(nil)
	}
	return object, nil
}
