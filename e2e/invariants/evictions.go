package invariants

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// evictedWrongly: a workload is restarted only if its mount is dead, and once for each
// client: the client on its node began after the workload did, and is Ready. A successor
// of an evicted pod begins after that client, so that evicting it is found too. This is
// also invariant 7, as far as users' pods go.
func evictedWrongly(s *state, e event) []string {
	pod, ok := e.before.(*corev1.Pod)
	if !ok || e.Resource != "pods/eviction" || !e.byFairlead() || !e.done() {
		return nil
	}
	uid := string(pod.UID)
	if s.evicted[uid] {
		return []string{fmt.Sprintf("pod %s is evicted twice", pod.Name)}
	}
	s.evicted[uid] = true
	if metav1.GetControllerOf(pod) == nil {
		return []string{fmt.Sprintf("pod %s is evicted, and nothing creates it again", pod.Name)}
	}
	for _, c := range s.staying(isClient) {
		if c.Spec.NodeName != pod.Spec.NodeName {
			continue
		}
		if !sandbox.IsReady(c) {
			return []string{fmt.Sprintf("pod %s is evicted while client %s is not Ready", pod.Name, c.Name)}
		}
		// A client that was given a new sandbox is older, and its namespace is not.
		if began := namespaceBegan(c); !pod.CreationTimestamp.Time.Before(began) {
			return []string{fmt.Sprintf("pod %s of %s is evicted, and client %s began before, at %s", pod.Name, pod.CreationTimestamp, c.Name, began)}
		}
		return nil
	}
	return []string{fmt.Sprintf("pod %s is evicted, and its node %s has no client", pod.Name, pod.Spec.NodeName)}
}

// namespaceBegan is when the network namespace of a client began, rounded up to the
// second that the API has times in.
func namespaceBegan(client *corev1.Pod) time.Time {
	began := client.CreationTimestamp.Time
	for _, c := range client.Status.Conditions {
		if c.Type == corev1.PodReadyToStartContainers && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(began) {
			began = c.LastTransitionTime.Time
		}
	}
	return began
}
