package caches

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// SlimPods returns a transform that keeps the fields of client and server pods that are in
// use. Of pods whose build depends on settings, it also keeps the fields of the build.
func SlimPods(profiles []storage.Profile) func(any) (any, error) {
	var components []labels.Selector
	for _, p := range profiles {
		for _, set := range append(p.OtherNetworkLabels(), p.ServerLabels) {
			components = append(components, labels.SelectorFromSet(set))
		}
	}
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			pod.ManagedFields = nil
			spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, SchedulingGates: pod.Spec.SchedulingGates}
			if slices.ContainsFunc(components, func(s labels.Selector) bool { return s.Matches(labels.Set(pod.Labels)) }) {
				keepBuilt(&spec, &pod.Spec)
			}
			pod.Spec = spec
			pod.Status = corev1.PodStatus{
				Phase: pod.Status.Phase, Conditions: pod.Status.Conditions,
				StartTime: pod.Status.StartTime, PodIPs: pod.Status.PodIPs, ContainerStatuses: slimStatuses(pod.Status.ContainerStatuses),
			}
		}
		return object, nil
	}
}

// slimStatuses keeps the start times of containers.
func slimStatuses(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	slim := make([]corev1.ContainerStatus, 0, len(statuses))
	for _, s := range statuses {
		slim = append(slim, corev1.ContainerStatus{Name: s.Name, State: s.State})
	}
	return slim
}

// keepBuilt keeps the fields that Component.Built is read from.
func keepBuilt(slim, whole *corev1.PodSpec) {
	slim.Tolerations, slim.NodeSelector, slim.PriorityClassName = whole.Tolerations, whole.NodeSelector, whole.PriorityClassName
	for _, v := range whole.Volumes {
		if v.Name == longhorn.LogVolume && v.HostPath != nil {
			slim.Volumes = append(slim.Volumes, v)
		}
	}
	if len(whole.Containers) == 0 {
		return
	}
	container := corev1.Container{Args: whole.Containers[0].Args, Resources: whole.Containers[0].Resources}
	if probe := whole.Containers[0].LivenessProbe; probe != nil {
		container.LivenessProbe = &corev1.Probe{TimeoutSeconds: probe.TimeoutSeconds}
	}
	slim.Containers = []corev1.Container{container}
}

// SlimNode drops images and volumes, which are most of a node.
func SlimNode(object any) (any, error) {
	if node, ok := object.(*corev1.Node); ok {
		slim := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, CreationTimestamp: node.CreationTimestamp, Labels: node.Labels},
			Spec:       corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		}
		slim.Status.NodeInfo.BootID = node.Status.NodeInfo.BootID
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
