package invariants

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Restarts counts by kind how often one component was created, at most.
type Restarts map[string]int

// Kinds of components.
const (
	ShareManager    = "share manager"
	InstanceManager = "instance manager"
)

// sidecarReplicas are those of the CSI driver's Deployments (v1.7.2, csi/deployment.go).
const (
	sidecars        = "CSI sidecars"
	sidecarReplicas = 3
)

// CountRestarts counts the pods that writes have created.
func CountRestarts(writes []sandbox.Write) (Restarts, error) {
	pods := map[[2]string]int{}
	for _, w := range writes {
		if w.Verb != "create" || w.Resource != "pods" || w.Namespace != names.Namespace || w.Code >= 300 {
			continue
		}
		var pod corev1.Pod
		if err := json.Unmarshal(w.Response, &pod); err != nil {
			return nil, fmt.Errorf("reading pod %s: %w", w.Name, err)
		}
		if kind, name := ComponentOf(&pod); kind != "" {
			pods[[2]string{kind, name}]++
		}
	}
	counts := Restarts{}
	for component, n := range pods {
		if component[0] == sidecars {
			n = (n + sidecarReplicas - 1) / sidecarReplicas
		}
		counts[component[0]] = max(counts[component[0]], n)
	}
	return counts, nil
}

// MoreThan are the kinds that were restarted more often than allowed.
func (r Restarts) MoreThan(allowed int) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r)), func(kind string) bool { return r[kind] <= allowed })
}

// ComponentOf a pod: its kind, and a name that its successor has, too.
func ComponentOf(pod *corev1.Pod) (kind, name string) {
	owner := metav1.GetControllerOf(pod)
	switch {
	case strings.HasPrefix(pod.Name, "instance-manager-"):
		return InstanceManager, pod.Name
	case strings.HasPrefix(pod.Name, "backing-image-manager-"):
		return "backing image manager", pod.Name
	case strings.HasPrefix(pod.Name, "share-manager-"):
		return ShareManager, pod.Name
	case owner != nil && owner.Kind == "DaemonSet" && owner.Name == names.ClientDaemonSet:
		return "CSI plugin", nodeOf(pod)
	case owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.Name, "engine-image-"):
		return "engine image", nodeOf(pod)
	case owner != nil && owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.Name, "csi-"):
		return sidecars, owner.Name[:strings.LastIndex(owner.Name, "-")]
	}
	return "", ""
}

// nodeOf a pod of a DaemonSet, which is created for a node.
func nodeOf(pod *corev1.Pod) string {
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}
