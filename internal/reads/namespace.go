package reads

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// sandboxOf returns what a pod's status says about its network namespace.
func sandboxOf(pod *corev1.Pod, reported []multus.Reported) rwx.Sandbox {
	s := rwx.Sandbox{Identity: identity(pod, reported)}
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
func recordedNamespace(pod *corev1.Pod) rwx.NetworkNamespace {
	n, err := rwx.ParseNetworkNamespace(pod.Annotations[rwx.NamespaceAnnotation])
	if err != nil {
		return rwx.NetworkNamespace{}
	}
	return n
}

// identity has a digest of each of the pod's addresses on the cluster network and of each
// interface that Multus reports, joined by dots. The digest of an interface includes its MAC
// address, which changes even if IP addresses are fixed.
func identity(pod *corev1.Pod, reported []multus.Reported) string {
	var parts []string
	for _, ip := range pod.Status.PodIPs {
		parts = append(parts, digest(ip.IP))
	}
	for _, r := range reported {
		parts = append(parts, digest(fmt.Sprint(r.Network, r.Interface, r.IPs, r.MAC)))
	}
	if len(parts) == 0 {
		return digest("")
	}
	slices.Sort(parts)
	return strings.Join(parts, ".")
}

func digest(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:])[:8]
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
