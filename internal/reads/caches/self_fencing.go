package caches

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// selfFencing is the argument that makes ceph-csi (v3.15.0 and later) block a lost node's address in
// ControllerUnpublishVolume. ceph-csi later unblocks the address without requiring a reboot. Both the
// controller plugin and the node plugin have the argument.
const selfFencing = "enable-fencing"

// FencesItself reports whether a container of the pod has the argument, as Go's package flag parses it.
func FencesItself(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(append(slices.Clone(c.Command), c.Args...), func(arg string) bool {
			name, value, given := strings.Cut(arg, "=")
			if name != "--"+selfFencing && name != "-"+selfFencing {
				return false
			}
			on, err := strconv.ParseBool(value)
			return !given || err == nil && on
		})
	})
}

// selfFencingOnly reduces a pod's containers to the argument that FencesItself checks.
func selfFencingOnly(pod *corev1.Pod) []corev1.Container {
	if !FencesItself(pod) {
		return nil
	}
	return []corev1.Container{{Args: []string{"--" + selfFencing}}}
}
