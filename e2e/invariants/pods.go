package invariants

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/multus"
)

// isClient: a pod of the CSI plugin's DaemonSet.
func isClient(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return pod.Namespace == names.Namespace && owner != nil && owner.Kind == "DaemonSet" && owner.Name == names.ClientDaemonSet
}

// isServer: a share manager's pod.
func isServer(pod *corev1.Pod) bool { return hasLabels(pod, names.ServerLabels) }

func isInstanceManager(pod *corev1.Pod) bool { return hasLabels(pod, names.InstanceManagerLabels) }

func hasLabels(pod *corev1.Pod, labels map[string]string) bool {
	for key, value := range labels {
		if pod.Labels[key] != value {
			return false
		}
	}
	return pod.Namespace == names.Namespace
}

// staying are the pods that are to stay, by name.
func (s *state) staying(is func(*corev1.Pod) bool) []*corev1.Pod {
	var pods []*corev1.Pod
	for pod := range all[*corev1.Pod](s) {
		if is(pod) && pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

// requests are the attachments on Longhorn's interfaces, and on those of volumes, that annotations ask for.
func requests(annotations map[string]string) []multus.Attachment {
	selections, err := multus.ParseSelections(annotations[multus.NetworksAnnotation], names.Namespace)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(selections, func(a multus.Attachment) bool {
		return !slices.Contains(names.Interfaces(), a.Interface) && !a.ForVolumes()
	})
}

// common is the network for all volumes that annotations ask for, as in NetworkRollout; "" is none.
func common(annotations map[string]string) string {
	for _, a := range requests(annotations) {
		if !a.ForVolumes() {
			return a.String()
		}
	}
	return ""
}
