// Package components says how the pods of Longhorn are built, and what uses them.
package components

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// AddBuilt adds to c.Built what only pods of instance managers have. Source:
// longhorn-manager controller/instance_manager_controller.go, createInstanceManagerPodSpec.
func AddBuilt(c catalog.Component, pod *corev1.Pod, manager *longhorn.InstanceManager) {
	c.Built[catalog.DataEngine] = "true" // the pod exists
	for _, v := range pod.Spec.Volumes {
		if v.Name == longhorn.LogVolume && v.HostPath != nil {
			c.Built[catalog.LogPathTrait] = catalog.LogDirectoryTrait(v.HostPath.Path)
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return
	}
	container := &pod.Spec.Containers[0]
	c.Built[catalog.CPURequest] = catalog.CPUTrait(*container.Resources.Requests.Cpu())
	if probe := container.LivenessProbe; probe != nil {
		c.Built[catalog.LivenessTimeout] = strconv.Itoa(int(probe.TimeoutSeconds))
	}
	if c.Engine == catalog.EngineV2 {
		builtWithSPDK(c.Built, container, manager.Spec.DataEngineSpec.V2)
	}
}

// builtWithSPDK adds the arguments of the v2 data engine's daemon. Values of the instance manager
// itself come from no setting.
func builtWithSPDK(built map[catalog.Trait]string, container *corev1.Container, own longhorn.V2DataEngineSpec) {
	args := container.Args
	// The mask is empty if a number of cores is set.
	if mask, _ := argument(args, "--spdk-cpumask"); mask != "" && own.CPUMask == "" {
		built[catalog.CPUMask] = catalog.CPUMaskTrait(mask)
	}
	memory, found := argument(args, "--spdk-memory-size")
	if !found { // before Longhorn 1.10 it takes all huge pages
		if limit, ok := container.Resources.Limits[longhorn.Hugepages]; ok {
			built[catalog.MemorySize] = catalog.MemoryTrait(limit)
		}
		return
	}
	built[catalog.MemorySize] = memory
	built[catalog.Hugepages] = strconv.FormatBool(!slices.Contains(args, "--spdk-no-hugepage"))
	built[catalog.InterruptMode] = strconv.FormatBool(slices.Contains(args, "--spdk-interrupt-mode"))
	cores, found := argument(args, "--spdk-core-number")
	if !found { // before Longhorn 1.12.1
		return
	}
	built[catalog.CPUCores] = cores
	built[catalog.LargePool] = poolSize(args, "--spdk-iobuf-large-pool-size", catalog.DefaultLargePool)
	built[catalog.SmallPool] = poolSize(args, "--spdk-iobuf-small-pool-size", catalog.DefaultSmallPool)
	if own.CPUIsolation == "" {
		isolated := slices.Contains(args, "--enable-irq-affinity") && slices.Contains(args, "--enable-workqueue-affinity")
		built[catalog.CPUIsolation] = strconv.FormatBool(isolated)
	}
}

// poolSize of SPDK's buffers: Longhorn omits the default.
func poolSize(args []string, flag string, standard int) string {
	if size, ok := argument(args, flag); ok {
		return size
	}
	return strconv.Itoa(standard)
}

// argument is the value after a flag.
func argument(args []string, flag string) (string, bool) {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1], true
	}
	return "", false
}
