package invariants

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// newer are settings of Longhorn 1.10 and later that pods are built with: the pods, and the trait of each.
var newer = map[string]struct {
	is    func(*corev1.Pod) bool
	trait func(*corev1.Pod) string
}{
	"instance-manager-pod-liveness-probe-timeout": {isInstanceManager, probe(func(p *corev1.Probe) int32 { return p.TimeoutSeconds })},

	"engine-image-pod-liveness-probe-period":            {isEngineImage, probe(func(p *corev1.Probe) int32 { return p.PeriodSeconds })},
	"engine-image-pod-liveness-probe-timeout":           {isEngineImage, probe(func(p *corev1.Probe) int32 { return p.TimeoutSeconds })},
	"engine-image-pod-liveness-probe-failure-threshold": {isEngineImage, probe(func(p *corev1.Probe) int32 { return p.FailureThreshold })},

	"log-path":                           {runsEngine("v2"), logDirectory},
	"data-engine-cpu-mask":               {runsEngine("v2"), argument("--spdk-cpumask", "")},
	"data-engine-memory-size":            {runsEngine("v2"), argument("--spdk-memory-size", "")},
	"data-engine-hugepage-enabled":       {runsEngine("v2"), without("--spdk-no-hugepage")},
	"data-engine-interrupt-mode-enabled": {runsEngine("v2"), with("--spdk-interrupt-mode")},
	"data-engine-number-of-cpu-cores":    {runsEngine("v2"), argument("--spdk-core-number", "")},
	"data-engine-cpu-isolation-enabled":  {runsEngine("v2"), with("--enable-irq-affinity")},
	"data-engine-iobuf-large-pool-size":  {runsEngine("v2"), argument("--spdk-iobuf-large-pool-size", "1024")},
	"data-engine-iobuf-small-pool-size":  {runsEngine("v2"), argument("--spdk-iobuf-small-pool-size", "8192")},
}

func isEngineImage(pod *corev1.Pod) bool {
	return pod.Namespace == names.Namespace && strings.HasPrefix(pod.Name, "engine-image-")
}

func probe(number func(*corev1.Probe) int32) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string {
		if p := pod.Spec.Containers[0].LivenessProbe; p != nil {
			return fmt.Sprint(number(p))
		}
		return ""
	}
}

func logDirectory(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if v.Name == "log" && v.HostPath != nil {
			return v.HostPath.Path
		}
	}
	return ""
}

// argument is what follows a flag; Longhorn leaves some out that have their default.
func argument(flag, standard string) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string {
		args := pod.Spec.Containers[0].Args
		if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		return standard
	}
}

func with(flag string) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string { return fmt.Sprint(slices.Contains(pod.Spec.Containers[0].Args, flag)) }
}

func without(flag string) func(*corev1.Pod) string {
	return func(pod *corev1.Pod) string { return fmt.Sprint(!slices.Contains(pod.Spec.Containers[0].Args, flag)) }
}

// ofEngine is what a setting says for a data engine, from 1.10 on.
func ofEngine(value, engine string) string {
	var engines map[string]string
	if json.Unmarshal([]byte(value), &engines) != nil {
		return value
	}
	return engines[engine]
}

// withoutResources are the containers of the CSI driver that do not have the resources that the setting says.
func (s *state) withoutResources(setting, value string) []string {
	var want map[string]corev1.ResourceRequirements
	if value != "" && json.Unmarshal([]byte(value), &want) != nil {
		return nil
	}
	var found []string
	csi := func(pod *corev1.Pod) bool {
		return isClient(pod) || isManaged(pod) && strings.HasPrefix(pod.Name, "csi-")
	}
	for _, pod := range s.staying(csi) {
		for _, c := range pod.Spec.Containers {
			if !equality.Semantic.DeepEqual(c.Resources, want[c.Name]) {
				found = append(found, fmt.Sprintf("%s is applied with %q, and container %s of pod %s has %v", setting, value, c.Name, pod.Name, c.Resources))
			}
		}
	}
	return found
}
