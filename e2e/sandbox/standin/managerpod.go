package standin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin/release"
)

// managerPod is what the pods of instance managers and backing image managers
// have in common: one pod of the object's name, on the object's node.
func managerPod(o *unstructured.Unstructured, container string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), OwnerReferences: blockingOwner(o)},
		Spec: corev1.PodSpec{
			ServiceAccountName: "longhorn-service-account", RestartPolicy: corev1.RestartPolicyNever, NodeName: text(o, "spec", "nodeID"),
			Containers: []corev1.Container{{Name: container, Image: text(o, "spec", "image")}},
		},
	}
}

// livenessProbe has the times that Longhorn gives all its probes (datastore/kubernetes.go).
func livenessProbe() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}},
		InitialDelaySeconds: 3, TimeoutSeconds: 4, PeriodSeconds: 5, FailureThreshold: 3,
	}
}

// syncPod makes the pod of a manager anew where it is gone or has ended, and
// writes what has become of it.
func (l Longhorn) syncPod(ctx context.Context, s *survey, o *unstructured.Unstructured, build func(*unstructured.Unstructured, *survey) (*corev1.Pod, error)) error {
	pod := s.pods[o.GetName()]
	if err := l.writeState(ctx, o, pod); err != nil {
		return err
	}
	if pod != nil {
		if pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded) {
			if err := client.IgnoreNotFound(l.client.Delete(ctx, pod)); err != nil {
				return fmt.Errorf("deleting pod %s, which has ended: %w", pod.Name, err)
			}
		}
		return l.restartIfIdle(ctx, s, o, pod)
	}
	pod, err := build(o, s)
	if err != nil || pod == nil {
		return err
	}
	return l.create(ctx, pod)
}

// RestartIdle returns a stand-in that also restarts instance managers which run nothing when their pods are not built as
// the settings say: areDangerZoneSettingsSyncedToIMPod in controller/instance_manager_controller.go.
func (l Longhorn) RestartIdle() Longhorn {
	l.restartIdle = true
	return l
}

func (l Longhorn) restartIfIdle(ctx context.Context, s *survey, o *unstructured.Unstructured, pod *corev1.Pod) error {
	if !l.restartIdle || o.GetKind() != "InstanceManager" || text(o, "status", "currentState") != stateRunning || len(instancesOf(o)) > 0 {
		return nil
	}
	wanted, err := instanceManagerPod(o, s)
	if err != nil || wanted == nil || pod.DeletionTimestamp != nil || builtAlike(pod, wanted) {
		return err
	}
	return l.deletePods(ctx, []corev1.Pod{*pod})
}

// builtAlike compares what Longhorn compares of an instance manager's pod.
func builtAlike(a, b *corev1.Pod) bool {
	return a.Annotations[tolerationsAnnotation] == b.Annotations[tolerationsAnnotation] &&
		a.Annotations[release.NetworksAnnotation] == b.Annotations[release.NetworksAnnotation] &&
		a.Spec.PriorityClassName == b.Spec.PriorityClassName && maps.Equal(a.Spec.NodeSelector, b.Spec.NodeSelector) &&
		alike(&a.Spec.Containers[0], &b.Spec.Containers[0]) && logsOf(a) == logsOf(b)
}

func alike(a, b *corev1.Container) bool {
	return a.Resources.Requests.Cpu().Equal(*b.Resources.Requests.Cpu()) && slices.Equal(a.Args, b.Args) &&
		a.LivenessProbe.TimeoutSeconds == b.LivenessProbe.TimeoutSeconds
}

func (l Longhorn) writeState(ctx context.Context, o *unstructured.Unstructured, pod *corev1.Pod) error {
	was := text(o, "status", "currentState")
	status := map[string]any{"currentState": managerState(was, pod), "ownerID": text(o, "spec", "nodeID")}
	if status["currentState"] == stateRunning {
		status["ip"] = pod.Status.PodIP
	}
	for field, value := range status {
		if text(o, "status", field) != value {
			return l.updateStatus(ctx, o, status)
		}
	}
	return nil
}

// States of a manager and of an instance.
const (
	stateStarting = "starting"
	stateRunning  = "running"
	stateStopped  = "stopped"
	stateError    = "error"
)

// managerState follows syncStatusWithPod in controller/instance_manager_controller.go.
func managerState(was string, pod *corev1.Pod) string {
	switch {
	case pod == nil && (was == "" || was == stateStopped):
		return stateStopped
	case pod == nil, pod.DeletionTimestamp != nil:
		return stateError
	}
	switch pod.Status.Phase {
	case corev1.PodRunning:
		for _, c := range pod.Status.ContainerStatuses {
			if !c.Ready {
				return stateStarting
			}
		}
		return stateRunning
	case corev1.PodPending:
		return stateStarting
	}
	return stateError
}
