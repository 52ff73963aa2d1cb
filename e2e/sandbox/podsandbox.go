package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/multus"
)

// RestartSandbox gives a simulated pod a new sandbox, as a kubelet does after
// the old one died: a new network namespace, with other addresses, and its
// containers started anew in it. Multus reports what it attached a moment later.
func (s *Sandbox) RestartSandbox(ctx context.Context, pod client.ObjectKey) error {
	if err := s.StopSandbox(ctx, pod); err != nil {
		return err
	}
	return s.StartSandbox(ctx, pod)
}

// StopSandbox is the first half of RestartSandbox: the sandbox has died, its
// network with it, and there is no other yet.
func (s *Sandbox) StopSandbox(ctx context.Context, key client.ObjectKey) error {
	return s.updatePodStatus(ctx, key, func(pod *corev1.Pod) error {
		switch {
		case pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil:
			return fmt.Errorf("pod %s is not running", key)
		case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
			return fmt.Errorf("pod %s is never restarted: without its sandbox it fails", key)
		}
		stopSandbox(pod, metav1.Now())
		return nil
	})
}

// StartSandbox is the second half of RestartSandbox. It takes up to a second, so
// that the times before and after differ in the API too, where they have no fractions.
func (s *Sandbox) StartSandbox(ctx context.Context, key client.ObjectKey) error {
	return s.updatePodStatus(ctx, key, func(pod *corev1.Pod) error {
		since := condition(pod, corev1.PodReadyToStartContainers).LastTransitionTime
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(since.Add(time.Second))):
		}
		ips := pod.Status.PodIPs
		if !pod.Spec.HostNetwork {
			var err error
			if ips, err = s.newPodIPs(ctx, pod.Spec.NodeName); err != nil {
				return err
			}
		}
		startSandbox(pod, ips, metav1.Now())
		return nil
	})
}

// newPodIPs are addresses of a node that no pod has had: kwok gives new pods addresses from the beginning of the node's
// ranges, and a new sandbox gets its own from the end.
func (s *Sandbox) newPodIPs(ctx context.Context, name string) (ips []corev1.PodIP, _ error) {
	var node corev1.Node
	if err := s.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	last := 255 - s.sandboxes.Add(1)
	if last < 128 {
		return nil, errors.New("too many new sandboxes: their addresses may be those of other pods")
	}
	for _, cidr := range node.Spec.PodCIDRs {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return nil, fmt.Errorf("reading pod range %q: %w", cidr, err)
		}
		bytes := prefix.Addr().AsSlice()
		bytes[len(bytes)-1] = byte(last)
		if address, ok := netip.AddrFromSlice(bytes); ok {
			ips = append(ips, corev1.PodIP{IP: address.String()})
		}
	}
	return ips, nil
}

func (s *Sandbox) updatePodStatus(ctx context.Context, key client.ObjectKey, change func(*corev1.Pod) error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var pod corev1.Pod
		if err := s.Client.Get(ctx, key, &pod); err != nil {
			return err
		}
		if err := change(&pod); err != nil {
			return err
		}
		return s.Client.Status().Update(ctx, &pod)
	})
	if err != nil {
		return fmt.Errorf("changing the status of pod %s: %w", key, err)
	}
	return nil
}

// stopSandbox leaves the pod's address, as a kubelet does until there is another.
func stopSandbox(pod *corev1.Pod, now metav1.Time) {
	setSandboxConditions(pod, corev1.ConditionFalse, now)
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if running := status.State.Running; running != nil {
			// 128 + SIGKILL: they die with the namespaces that they live in.
			status.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "Error", StartedAt: running.StartedAt, FinishedAt: now,
			}}
		}
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
		status.Ready, status.Started = false, ptr.To(false)
	}
	if _, reported := pod.Annotations[multus.NetworkStatusAnnotation]; reported {
		pod.Annotations[multus.NetworkStatusAnnotation] = "[]" // what Multus leaves when it detaches
	}
}

func startSandbox(pod *corev1.Pod, ips []corev1.PodIP, now metav1.Time) {
	setSandboxConditions(pod, corev1.ConditionTrue, now)
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		status.Ready, status.Started = true, ptr.To(true)
		status.RestartCount++
	}
	pod.Status.PodIPs = ips
	if len(ips) > 0 {
		pod.Status.PodIP = ips[0].IP
	}
}

// setSandboxConditions sets those that change with the sandbox. Initialized
// stays: without init containers it is always true.
func setSandboxConditions(pod *corev1.Pod, to corev1.ConditionStatus, now metav1.Time) {
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.ContainersReady, corev1.PodReady} {
		c := condition(pod, kind)
		c.Status, c.LastTransitionTime, c.Reason, c.Message = to, now, "", ""
		if to == corev1.ConditionFalse && kind != corev1.PodReadyToStartContainers {
			c.Reason = "ContainersNotReady"
		}
	}
}

// IsReady tells whether a pod is Ready.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// condition of the pod, added if there is none.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind})
	return &pod.Status.Conditions[len(pod.Status.Conditions)-1]
}
