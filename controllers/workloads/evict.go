package workloads

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/storage"
)

// Pace of evictions. A dead mount serves nobody, so they are not slow; but a
// node that mounts everything at once, or a workload all of whose pods start at
// once, is worse off than one that does it in turn.
const (
	// perNode is how many workloads may be terminating on a node at a time.
	perNode = 5
	// starting is how long a pod is waited for that is leaving, or not Ready yet.
	starting = time.Minute
	// pace is how soon it is tried again where others come first.
	pace = 2 * time.Second
	// budgetRetry is how soon it is tried again where a disruption budget is used up.
	budgetRetry = 10 * time.Second
)

// evict asks the API server to evict the pod, and returns when to try again
// where it is not its turn, or its budget is used up.
func (r *Reconciler) evict(ctx context.Context, n *node, pod *corev1.Pod, w storage.Workload, v storage.Verdict, policy storage.Restarts) (time.Duration, error) {
	others, err := r.siblings(ctx, pod)
	if err != nil {
		return 0, err
	}
	if busy := inFlight(others, policy.Now); busy != "" {
		r.Log.Debug("waiting for another pod of the workload", "namespace", pod.Namespace, "pod", pod.Name, "other", busy)
		return pace, nil
	}
	uid := pod.UID
	err = r.Client.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	switch {
	case err == nil:
		r.Log.Info("restarted a workload", "namespace", pod.Namespace, "pod", pod.Name, "node", pod.Spec.NodeName, "reason", v.Reason, "detail", v.Detail)
		r.metrics.restarted(v.Reason)
		r.Events.Eventf(ownerReference(pod, w.Owner), pod, corev1.EventTypeWarning, "Remount", "Evict",
			"restarted pod %s on %s: %s", pod.Name, pod.Spec.NodeName, v.Detail)
		return 0, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, nil // gone, or another pod by now
	case apierrors.IsTooManyRequests(err):
		v.Reason, v.Detail = reasonBudget, v.Detail+"; its PodDisruptionBudget does not allow a restart now. A budget with unhealthyPodEvictionPolicy AlwaysAllow lets pods go that are not Ready"
		r.tell(n, pod, v)
		return budgetRetry, nil
	}
	return 0, fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// reasonBudget is added to the reasons of storage.Judge by the API server's answer.
const reasonBudget = "disruption budget"

// perPod are labels that differ between the pods of one controller.
var perPod = []string{
	"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
	"controller-revision-hash", "pod-template-hash", "pod-template-generation",
	"batch.kubernetes.io/job-completion-index",
}

// siblings are the other pods of the pod's controller. They are found by labels
// first, which any controller copies from its template.
func (r *Reconciler) siblings(ctx context.Context, pod *corev1.Pod) ([]corev1.Pod, error) {
	labels := maps.Clone(pod.Labels)
	for _, key := range perPod {
		delete(labels, key)
	}
	var list corev1.PodList
	if err := r.Live.List(ctx, &list, client.InNamespace(pod.Namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing the pods beside %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	owner := metav1.GetControllerOf(pod)
	return slices.DeleteFunc(list.Items, func(other corev1.Pod) bool {
		o := metav1.GetControllerOf(&other)
		return o == nil || o.UID != owner.UID || other.UID == pod.UID || cluster.Ended(&other)
	}), nil
}

// inFlight names a pod that is being replaced: it is terminating, or new and not
// yet Ready.
func inFlight(pods []corev1.Pod, now time.Time) string {
	for i := range pods {
		if pod := &pods[i]; leaving(pod, now) || !cluster.Ready(pod) && now.Before(pod.CreationTimestamp.Add(starting)) {
			return pod.Name
		}
	}
	return ""
}

func countInFlight(pods []corev1.Pod, now time.Time) int {
	n := 0
	for i := range pods {
		if leaving(&pods[i], now) {
			n++
		}
	}
	return n
}

// leaving tells of a pod that is terminating. One that takes too long is not
// waited for: that may be the dead mount itself.
func leaving(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Before(pod.DeletionTimestamp.Add(starting)) // the grace period is in it
}

// ownerReference is what an event about a pod's controller is about.
func ownerReference(pod *corev1.Pod, o storage.Owner) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: pod.Namespace, Name: o.Name, UID: types.UID(o.UID),
	}
}
