package workloads

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/storage"
)

// Pace of evictions. A dead mount serves nobody, so they are not slow; but a
// node that mounts everything at once, or a workload all of whose pods start at
// once, is worse off than one that does it in turn.
const (
	// perNode is how many workloads may be terminating on a node at a time.
	perNode = 10
	// leavingFor is how much longer than its grace period a leaving pod is waited for.
	leavingFor = time.Minute
	// pace is how soon it is tried again where others on the node come first.
	pace = 5 * time.Second
	// changedRetry is how soon the pods of a node are listed again when one has changed.
	changedRetry = time.Second
	// budgetRetry is how soon it is tried again where a disruption budget is used up.
	budgetRetry = 10 * time.Second
)

// evict asks the API server to evict the pod, whose turn it is. It returns when to
// list again where restarts are paused, the pod has changed since it was listed, or
// its disruption budget is used up.
func (r *Reconciler) evict(ctx context.Context, n *node, pod *corev1.Pod, w storage.Workload, v storage.Verdict, policy storage.Restarts, fresh bool) (evicted bool, after time.Duration, _ error) {
	owner := types.UID(w.Owner.UID)
	allowed, err := r.brake.allows(policy.Now, r.MaxPercent, func() (int, error) { return r.workloads(ctx) })
	if err == nil && !allowed {
		err = r.pause(ctx)
	}
	if err != nil || !allowed {
		r.turns.giveBack(owner)
		return false, pace, err // that restarts are paused is an event
	}
	precondition := &metav1.Preconditions{UID: &pod.UID}
	if !fresh { // the pod was judged a while ago
		precondition.ResourceVersion = &pod.ResourceVersion
	}
	err = r.Client.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: precondition},
	})
	switch {
	case err == nil:
		r.Log.Info("restarted a workload", "namespace", pod.Namespace, "pod", pod.Name, "node", pod.Spec.NodeName, "reason", v.Reason, "detail", v.Detail)
		r.metrics.restarted(v.Reason)
		if r.turns.mayReport(owner, policy.Now) {
			r.Events.Eventf(ownerReference(pod, w.Owner), pod, corev1.EventTypeWarning, "Remount", "Evict",
				"restarted pod %s on %s: %s. Other pods of %s %s follow without an event for %s",
				pod.Name, pod.Spec.NodeName, v.Detail, w.Owner.Kind, w.Owner.Name, eventEvery)
		}
		return true, 0, nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		r.brake.giveBack()
		r.turns.giveBack(owner)
		if !fresh && apierrors.IsConflict(err) {
			return false, changedRetry, nil
		}
		return false, 0, nil // gone, or another pod by now
	case apierrors.IsTooManyRequests(err):
		r.brake.giveBack()
		r.turns.giveBack(owner)
		v.Reason, v.Detail = reasonBudget, v.Detail+"; its PodDisruptionBudget does not allow a restart now. A budget with unhealthyPodEvictionPolicy AlwaysAllow lets pods go that are not Ready"
		r.tell(n, pod, v)
		return false, budgetRetry, nil
	}
	return false, 0, fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// reasonBudget is added to the reasons of storage.Judge by the API server's answer.
const reasonBudget = "disruption budget"

func countInFlight(pods []corev1.Pod, now time.Time) int {
	n := 0
	for i := range pods {
		if leaving(&pods[i], now) {
			n++
		}
	}
	return n
}

// leaving tells whether a pod is terminating. A pod that takes too long is not
// waited for: the dead mount itself may hold it.
func leaving(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Before(pod.DeletionTimestamp.Add(leavingFor)) // the grace period is in it
}

// ownerReference is what an event about a pod's controller is about.
func ownerReference(pod *corev1.Pod, o storage.Owner) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: pod.Namespace, Name: o.Name, UID: types.UID(o.UID),
	}
}
