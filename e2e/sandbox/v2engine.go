package sandbox

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster/longhorn"
)

// EnableV2 switches the v2 data engine on, and waits for its instance managers.
// InstallComponents comes before.
func (l Longhorn) EnableV2(ctx context.Context) error {
	setting := &longhorn.Setting{}
	setting.Namespace, setting.Name = l.namespace, "v2-data-engine"
	patch, err := json.Marshal(map[string]any{"value": "true"})
	if err != nil {
		return fmt.Errorf("switching the v2 data engine on: %w", err)
	}
	if err := l.client.Patch(ctx, setting, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("switching the v2 data engine on: %w", err)
	}
	return l.waitComponents(ctx)
}

// runV2 gives the pod the arguments of Longhorn 1.12, with their defaults: 1.7 has
// neither CPU mask nor memory size.
func runV2(pod *corev1.Pod) {
	container := &pod.Spec.Containers[0]
	container.Args = []string{
		"instance-manager", "--spdk-log", "all", "--spdk-cpumask", "0x3", "--spdk-memory-size", "2048", "--enable-spdk", "--debug",
		"daemon", "--spdk-enabled", "--listen", "0.0.0.0:8500",
	}
	if container.Resources.Requests == nil {
		container.Resources.Requests = corev1.ResourceList{}
	}
	container.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("128Mi")
	container.Resources.Limits = corev1.ResourceList{corev1.ResourceHugePagesPrefix + "2Mi": resource.MustParse("2048Mi")}
	container.LivenessProbe.Exec.Command[2] = portsProbe(8500, 8501, 8502, 8503, 8504)
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "hugepage", MountPath: "/hugepages"})
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
		Name:         "hugepage",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages}},
	})
}
