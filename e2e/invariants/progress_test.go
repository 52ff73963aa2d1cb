package invariants

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

func TestReplayReportsProgressOfASetting(t *testing.T) {
	w := newWorld(t, "")
	r := NewReplay()
	r.Follow(w.writes)
	for _, pod := range []string{"csi-node-1", "csi-node-2"} {
		w.write("kwok", "delete", &corev1.Pod{ObjectMeta: at(pod)})
	}
	w.setting("admin", priorityClassName, "old", true)
	pod := w.client("client", "node-1", "")
	w.setting("admin", priorityClassName, "new", true)
	w.setting(lhuser, priorityClassName, "new", false)
	pod.Spec.PriorityClassName = "new"
	w.write("kwok", "update", pod)
	w.write(fairlead, "update", &v1alpha1.Setting{ObjectMeta: at(priorityClassName), Status: v1alpha1.SettingStatus{Applied: true, AppliedValue: ptr.To("new"), EffectiveValue: "new"}})
	w.setting(lhuser, priorityClassName, "new", true)
	var got []string
	for _, p := range r.Follow(w.writes, priorityClassName)[priorityClassName] {
		got = append(got, fmt.Sprintf("%s: %q applied %v, reported %v, missing %d", p.By, p.Value, p.Applied, p.Reported, len(p.Missing)))
	}
	want := []string{
		`: "" applied true, reported false, missing 0`,
		`admin: "old" applied true, reported false, missing 0`,
		`daemon-set-controller: "old" applied true, reported false, missing 1`,
		`admin: "new" applied true, reported false, missing 1`,
		`longhorn-service-account: "new" applied false, reported false, missing 1`,
		`kwok: "new" applied false, reported false, missing 0`,
		`fairlead-controller: "new" applied false, reported true, missing 0`,
		`longhorn-service-account: "new" applied true, reported true, missing 0`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the progress is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const priorityClassName = "priority-class"

func TestMissingPodsOfEachSetting(t *testing.T) {
	built := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: at("instance-manager-1")}
		pod.Labels = map[string]string{names.EngineLabel: "v1"}
		for key, value := range names.InstanceManagerLabels {
			pod.Labels[key] = value
		}
		pod.Spec.Containers = make([]corev1.Container, 1)
		change(pod)
		return pod
	}
	bare := func(*corev1.Pod) {}
	cpu := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1920m")}
	}
	v2 := func(pod *corev1.Pod) { pod.Labels[names.EngineLabel] = "v2" }
	args := func(list ...string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { v2(pod); pod.Spec.Containers[0].Args = list }
	}
	logs := corev1.Volume{Name: "log", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}}
	for setting, test := range map[string]struct {
		value   string
		without func(*corev1.Pod) // nil is no pod
		with    func(*corev1.Pod)
	}{
		priorityClassName: {"critical", bare, func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "critical" }},
		"taint-toleration": {"a=b:NoSchedule", bare, func(pod *corev1.Pod) {
			pod.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeNotReady}, {Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
		}},
		"system-managed-components-node-selector": {"a:b;c:d", bare, func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"c": "d", "a": "b"} }},
		"guaranteed-instance-manager-cpu":         {"12", bare, cpu},
		"v1-data-engine":                          {"true", nil, bare},
		"v2-data-engine":                          {"false", func(pod *corev1.Pod) { pod.Labels[names.EngineLabel] = "v2" }, nil},
		"v2-data-engine-guaranteed-instance-manager-cpu": {"1920",
			func(pod *corev1.Pod) { pod.Labels[names.EngineLabel] = "v2" },
			func(pod *corev1.Pod) { cpu(pod); pod.Labels[names.EngineLabel] = "v2" }},
		"instance-manager-pod-liveness-probe-timeout": {"20", bare, func(pod *corev1.Pod) {
			pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{TimeoutSeconds: 20}
		}},
		"engine-image-pod-liveness-probe-period": {"20",
			func(pod *corev1.Pod) { pod.Name = "engine-image-1" },
			func(pod *corev1.Pod) {
				pod.Name, pod.Spec.Containers[0].LivenessProbe = "engine-image-1", &corev1.Probe{PeriodSeconds: 20}
			}},
		"system-managed-csi-components-resource-limits": {`{"csi-attacher":{"requests":{"cpu":"1920m"}}}`,
			func(pod *corev1.Pod) { pod.Name, pod.Spec.Containers[0].Name = "csi-attacher-1", "csi-attacher" },
			func(pod *corev1.Pod) {
				cpu(pod)
				pod.Name, pod.Spec.Containers[0].Name = "csi-attacher-1", "csi-attacher"
			}},
		"log-path":                           {"/var/log", v2, func(pod *corev1.Pod) { v2(pod); pod.Spec.Volumes = []corev1.Volume{logs} }},
		"data-engine-memory-size":            {`{"v2":"1024"}`, v2, args("--spdk-memory-size", "1024")},
		"data-engine-hugepage-enabled":       {`{"v2":"false"}`, v2, args("--spdk-no-hugepage")},
		"data-engine-interrupt-mode-enabled": {`{"v2":"true"}`, v2, args("--spdk-interrupt-mode")},
		"data-engine-iobuf-large-pool-size":  {`{"v2":"1024"}`, args("--spdk-iobuf-large-pool-size", "4096"), v2},
	} {
		missing := func(change func(*corev1.Pod)) []string {
			w := newWorld(t, "")
			w.writes = nil
			if change != nil {
				w.write(lhuser, "create", built(change))
			}
			w.setting("admin", setting, test.value, true)
			r := NewReplay()
			r.Follow(w.writes)
			return r.state.progress(setting).Missing
		}
		if found := missing(test.without); len(found) != 1 {
			t.Errorf("%s: built without it: %v", setting, found)
		}
		if found := missing(test.with); len(found) != 0 {
			t.Errorf("%s: built with it: %v", setting, found)
		}
	}
}
