package sandbox

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/multus"
)

func TestASandboxStopsAndStartsAsWithAKubelet(t *testing.T) {
	old, stopped, started := metav1.Unix(100, 0), metav1.Unix(200, 0), metav1.Unix(201, 0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{multus.NetworkStatusAnnotation: `[{"name":"cbr0"}]`}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &old, PodIP: "10.244.1.1", PodIPs: []corev1.PodIP{{IP: "10.244.1.1"}},
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: old},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: old},
				{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: old},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "c", Ready: true, RestartCount: 3, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: old}},
			}},
		},
	}
	check := func(kind corev1.PodConditionType, status corev1.ConditionStatus, since metav1.Time) {
		t.Helper()
		if c := condition(pod, kind); c.Status != status || !c.LastTransitionTime.Equal(&since) {
			t.Errorf("%s is %s since %s, want %s since %s", kind, c.Status, c.LastTransitionTime, status, since)
		}
	}

	stopSandbox(pod, stopped)
	check(corev1.PodReadyToStartContainers, corev1.ConditionFalse, stopped)
	check(corev1.PodReady, corev1.ConditionFalse, stopped)
	check(corev1.ContainersReady, corev1.ConditionFalse, stopped)
	check(corev1.PodScheduled, corev1.ConditionTrue, old)
	container := pod.Status.ContainerStatuses[0]
	if container.State.Waiting == nil || container.Ready || container.RestartCount != 3 {
		t.Errorf("without a sandbox the container is %+v", container)
	}
	if last := container.LastTerminationState.Terminated; last == nil || !last.StartedAt.Equal(&old) || !last.FinishedAt.Equal(&stopped) {
		t.Errorf("its last state is %+v", last)
	}
	if got := pod.Annotations[multus.NetworkStatusAnnotation]; got != "[]" || pod.Status.PodIP != "10.244.1.1" {
		t.Errorf("the network status is %q, the pod's address %q", got, pod.Status.PodIP)
	}

	startSandbox(pod, []corev1.PodIP{{IP: "10.244.1.254"}}, started)
	check(corev1.PodReadyToStartContainers, corev1.ConditionTrue, started)
	check(corev1.PodReady, corev1.ConditionTrue, started)
	container = pod.Status.ContainerStatuses[0]
	if container.State.Running == nil || !container.State.Running.StartedAt.Equal(&started) || !container.Ready || container.RestartCount != 4 {
		t.Errorf("with a new sandbox the container is %+v", container)
	}
	if pod.Status.PodIP != "10.244.1.254" || !pod.Status.StartTime.Equal(&old) || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod is %+v", pod.Status)
	}
}
