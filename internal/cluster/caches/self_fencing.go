package caches

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// selfFencing is the argument by which ceph-csi (v3.15.0 and later) blocks a lost node's address
// itself, in ControllerUnpublishVolume, and unblocks it again without asking for a reboot. Both
// plugins, the controller's and the nodes', are given it.
const selfFencing = "enable-fencing"

// FencesItself tells whether a container of the pod has the argument, as Go's package flag reads it.
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

// selfFencingOnly are the containers of a pod by which fencesItself goes.
func selfFencingOnly(pod *corev1.Pod) []corev1.Container {
	if !FencesItself(pod) {
		return nil
	}
	return []corev1.Container{{Args: []string{"--" + selfFencing}}}
}
