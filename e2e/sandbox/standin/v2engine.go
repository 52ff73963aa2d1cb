package standin

import (
	"cmp"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

// EnableV2 switches the v2 data engine on, and waits for its instance managers.
// InstallComponents comes before.
func (l Longhorn) EnableV2(ctx context.Context) error {
	if err := l.patch(ctx, l.object("Setting", "v2-data-engine"), map[string]any{"value": "true"}); err != nil {
		return err
	}
	return l.waitComponents(ctx)
}

// runV2 starts the SPDK daemon, by the settings that there are. v1.7.2 has neither CPU
// mask nor memory size; its pods get the arguments of v1.12.0 with their defaults.
func (v settingValues) runV2(pod *corev1.Pod) {
	container := &pod.Spec.Containers[0]
	args := []string{"instance-manager", "--spdk-log", "all", "--spdk-cpumask", v.mask()}
	cores, numbered := v[release.CpuCores]
	if numbered {
		args = append(args, "--spdk-core-number", decimal(ofV2(cores)))
	}
	_, former := v[release.FormerCPUMask]
	memory, pages := v.memory()
	if !former {
		args = append(args, "--spdk-memory-size", memory)
	}
	for _, pool := range []struct{ setting, standard string }{{release.LargePool, "1024"}, {release.SmallPool, "8192"}} {
		if size := decimal(ofV2(v[pool.setting])); size != "" && size != pool.standard {
			args = append(args, "--"+strings.Replace(pool.setting, "data-engine", "spdk", 1), size)
		}
	}
	args = append(args, "--enable-spdk", "--debug", "daemon", "--spdk-enabled", "--listen", "0.0.0.0:8500")
	if release.SwitchedOn(ofV2(v[release.InterruptMode])) {
		args = append(args, "--spdk-interrupt-mode")
	}
	if release.SwitchedOn(ofV2(v[release.CpuIsolation])) {
		args = append(args, "--enable-irq-affinity", "--enable-workqueue-affinity")
	}
	if pages == "0" {
		args = append(args, "--spdk-no-hugepage")
	}
	container.Args = args
	if container.Resources.Requests == nil {
		container.Resources.Requests = corev1.ResourceList{}
	}
	container.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("128Mi")
	container.Resources.Limits = corev1.ResourceList{corev1.ResourceHugePagesPrefix + "2Mi": resource.MustParse(pages + "Mi")}
}

// mask is empty where there is a number of cores.
func (v settingValues) mask() string {
	if cores := decimal(ofV2(v[release.CpuCores])); cores != "" && cores != "0" {
		return ""
	}
	return cmp.Or(ofV2(v[release.CpuMask]), v[release.FormerCPUMask], "0x3")
}

// memory in MiB, and how much of it is huge pages.
func (v settingValues) memory() (size, pages string) {
	size = decimal(cmp.Or(ofV2(v[release.MemorySize]), v[release.FormerMemory], "2048"))
	if pages := ofV2(v[release.HugepagesEnabled]); pages != "" && !release.SwitchedOn(pages) {
		return size, "0"
	}
	return size, size
}
