package invariants

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// missing: the storage system may wait before it creates an instance manager again.
const missing = "no instance manager runs"

// nodeCPU is what a simulated node has to give (e2e/controlplane/nodes), in thousandths.
const nodeCPU = 16000

// isManaged: a pod that Longhorn builds by its settings: its own components and the CSI
// driver's. Pods of a Deployment have no label of Longhorn's (v1.7.2, csi/deployment_util.go).
func isManaged(pod *corev1.Pod) bool {
	return pod.Namespace == names.Namespace && (hasLabels(pod, names.ManagedLabels) || isClient(pod) || strings.HasPrefix(pod.Name, "csi-"))
}

// runsEngine: an instance manager of a data engine.
func runsEngine(engine string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return isInstanceManager(pod) && pod.Labels[names.EngineLabel] == engine }
}

func priorityClass(pod *corev1.Pod) string { return pod.Spec.PriorityClassName }

// tolerations are those that are not Kubernetes' own, as taint-toleration spells them.
func tolerations(pod *corev1.Pod) string {
	var found []string
	for _, t := range pod.Spec.Tolerations {
		if !strings.Contains(t.Key, "kubernetes.io") {
			found = append(found, fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect))
		}
	}
	return strings.Join(found, ";")
}

func nodeSelector(pod *corev1.Pod) string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		found = append(found, key+":"+pod.Spec.NodeSelector[key])
	}
	return strings.Join(found, ";")
}

// share of its node's CPU that a pod requests, in percent.
func share(pod *corev1.Pod) string {
	return fmt.Sprint(pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() * 100 / nodeCPU)
}

func milliCPU(pod *corev1.Pod) string {
	return fmt.Sprint(pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue())
}

// engineRuns compares the instance managers of a data engine with its switch. While another setting is reported as not
// applied, the instance managers may be restarting for it, all at once if nothing runs on them.
func (s *state) engineRuns(engine, setting, value string) []string {
	pods := s.staying(runsEngine(engine))
	switch {
	case value == "true" && len(pods) == 0 && !s.somethingWaits():
		return []string{fmt.Sprintf("%s is applied, and %s %s", setting, missing, engine)}
	case value == "false" && len(pods) > 0:
		return []string{fmt.Sprintf("%s is applied, and pod %s runs %s", setting, pods[0].Name, engine)}
	}
	return nil
}

// somethingWaits: a setting is reported as not applied.
func (s *state) somethingWaits() bool {
	for setting := range all[*v1alpha1.Setting](s) {
		if !setting.Status.Applied {
			return true
		}
	}
	return false
}
