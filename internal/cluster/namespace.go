package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// sandboxOf returns what a pod's status says about its network namespace.
func sandboxOf(pod *corev1.Pod, reported []storage.Reported) storage.Sandbox {
	s := storage.Sandbox{Identity: identity(pod, reported)}
	if at := pod.Status.StartTime; at != nil {
		s.PodStarted = at.Time
	}
	if c := condition(pod, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionTrue {
		s.Made = c.LastTransitionTime.Time
	}
	for _, c := range pod.Status.ContainerStatuses {
		if running := c.State.Running; running != nil {
			s.ContainersStarted = earliest(s.ContainersStarted, running.StartedAt.Time)
		}
	}
	return s
}

// recordedNamespace returns the last recorded namespace of the pod; none if the record can't be parsed.
func recordedNamespace(pod *corev1.Pod) storage.NetworkNamespace {
	n, err := storage.ParseNetworkNamespace(pod.Annotations[storage.NamespaceAnnotation])
	if err != nil {
		return storage.NetworkNamespace{}
	}
	return n
}

// identity is a digest of the pod's addresses on the cluster network and of all
// addresses that Multus reports. It includes MAC addresses, which change even if
// IP addresses are fixed.
func identity(pod *corev1.Pod, reported []storage.Reported) string {
	var parts []string
	for _, ip := range pod.Status.PodIPs {
		parts = append(parts, ip.IP)
	}
	for _, r := range reported {
		parts = append(parts, fmt.Sprint(r.Network, r.Interface, r.IPs, r.MAC))
	}
	slices.Sort(parts)
	sum := sha256.Sum256(fmt.Append(nil, parts))
	return hex.EncodeToString(sum[:])[:16]
}

// earliest of two times. A zero time does not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}
