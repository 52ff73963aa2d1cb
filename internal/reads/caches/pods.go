package caches

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// SlimPods returns a transform that keeps the fields of storage pods that are in use. Of pods whose build depends on settings,
// it also keeps the fields of the build. names is nil without Longhorn.
func SlimPods(names *longhorn.Names) func(any) (any, error) {
	var components []labels.Selector
	if names != nil {
		for _, set := range append(names.OtherNetworkLabels(), names.ServerLabels) {
			components = append(components, labels.SelectorFromSet(set))
		}
	}
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			pod.ManagedFields = nil
			spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, Containers: selfFencingOnly(pod)}
			if slices.ContainsFunc(components, func(s labels.Selector) bool { return s.Matches(labels.Set(pod.Labels)) }) {
				keepBuilt(&spec, &pod.Spec)
			}
			pod.Spec = spec
			var statuses []corev1.ContainerStatus // of some 400 bytes each
			if names != nil && names.Namespace == pod.Namespace {
				statuses = slimStatuses(pod.Status.ContainerStatuses)
			}
			pod.Status = corev1.PodStatus{
				Phase: pod.Status.Phase, Conditions: pod.Status.Conditions,
				StartTime: pod.Status.StartTime, PodIPs: pod.Status.PodIPs, HostIPs: pod.Status.HostIPs, ContainerStatuses: statuses,
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
