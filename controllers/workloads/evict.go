package workloads

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Pace of evictions. A pod with a dead mount does no work, so evictions are fast.
// They are limited because a node should not mount all volumes at once, and a
// workload should not lose all its pods at once.
const (
	// perNode is how many workloads may be terminating on a node at a time.
	perNode = 10
	// leavingFor is how long beyond its grace period a terminating pod counts.
	leavingFor = time.Minute
	// pace is how soon to retry when other pods of the node come first.
	pace = 5 * time.Second
	// changedRetry is how soon to list the pods of a node again when one has changed.
	changedRetry = time.Second
	// budgetRetry is how soon to retry when a disruption budget is used up.
	budgetRetry = 10 * time.Second
	// refusedRetry is how soon to retry when the API server refuses for another reason.
	refusedRetry = 30 * time.Second
)

// evict asks the API server to evict the pod. If the pod is not evicted, evict returns when to list
// the pods of the node again.
func (r *Reconciler) evict(ctx context.Context, n *node, pod *corev1.Pod, w rwx.Workload, v rwx.Verdict, policy rwx.Restarts, fresh bool) (evicted bool, after time.Duration, _ error) {
	owner := types.UID(w.Owner.UID)
	allowed, err := r.brake.allows(policy.Now, r.MaxPercent, func() (int, error) { return r.workloads(ctx) })
	if err == nil && !allowed {
		err = r.pause(ctx)
	}
	if err != nil || !allowed {
		r.turns.giveBack(owner)
		return false, pace, err // the pause is an event
	}
	if v.Reason == rwx.ReasonServerMoved {
		if left, err := r.Cached.IsLeftBehind(ctx, r.Live, pod, w); err != nil || !left {
			r.turns.giveBack(owner)
			return false, changedRetry, err
		}
	}
	if !fresh {
		if unchanged, err := r.isUnchanged(ctx, pod); err != nil || !unchanged {
			r.turns.giveBack(owner)
			return false, changedRetry, err
		}
	}
	err = r.Client.SubResource("eviction").Create(ctx, pod.DeepCopy(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	switch {
	case err == nil:
		r.brake.count(policy.Now)
		r.Log.Info("restarted a workload", "namespace", pod.Namespace, "pod", pod.Name, "node", pod.Spec.NodeName, "reason", v.Reason, "detail", v.Detail)
		r.metrics.restarted(v.Reason)
		if r.turns.mayReport(owner, policy.Now) {
			r.Events.Eventf(ownerReference(pod, w.Owner), pod, corev1.EventTypeWarning, "Remount", "Evict",
				"restarted pod %s on %s: %s. Other pods of %s %s follow without an event for %s",
				pod.Name, pod.Spec.NodeName, v.Detail, w.Owner.Kind, w.Owner.Name, eventEvery)
		}
		return true, 0, nil
	case !isAnswer(err):
		return false, 0, fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err) // the pod may be evicted
	}
	r.turns.giveBack(owner)
	switch {
	case kit.IsRefused(err):
		v.Reason, v.Detail = rwx.ReasonRefused, v.Detail+"; the API server refuses to evict the pod. Remove the cause, or delete the pod yourself: "+err.Error()
		r.leave(n, pod, w, v, policy)
		return false, refusedRetry, nil
	case apierrors.IsNotFound(err):
		return false, 0, nil
	case kit.IsConflict(err): // the pod was replaced, or another eviction changed the budget
		return false, changedRetry, nil
	case apierrors.IsTooManyRequests(err):
		v.Reason, v.Detail = rwx.ReasonBudget, v.Detail+"; its PodDisruptionBudget does not allow a restart now. A budget with unhealthyPodEvictionPolicy AlwaysAllow permits the eviction of pods that are not Ready"
		r.leave(n, pod, w, v, policy)
		return false, budgetRetry, nil
	}
	return false, 0, fmt.Errorf("evicting pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// isAnswer reports whether the API server answered. A timeout does not tell whether the pod is evicted.
func isAnswer(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && !apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err)
}

// isUnchanged reports whether the API server still has the pod as it was listed. An
// eviction can't compare the version: Kubernetes takes the pod off its
// disruption budget first, and for some pods that are not Ready ignores the version.
func (r *Reconciler) isUnchanged(ctx context.Context, pod *corev1.Pod) (bool, error) {
	var now metav1.PartialObjectMetadata
	now.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), &now)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading pod %s/%s before its eviction: %w", pod.Namespace, pod.Name, err)
	}
	return now.UID == pod.UID && now.ResourceVersion == pod.ResourceVersion, nil
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

// leaving reports whether a pod is terminating. A pod that takes too long does not count: the dead
// mount itself may block it.
func leaving(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Before(pod.DeletionTimestamp.Add(leavingFor)) // includes the grace period
}

// ownerReference is the controller of a pod, for an event.
func ownerReference(pod *corev1.Pod, o rwx.Owner) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: o.APIVersion, Kind: o.Kind, Namespace: pod.Namespace, Name: o.Name, UID: types.UID(o.UID),
	}
}

const (
	// turn is how long after one pod of a controller the next is evicted.
	turn = 10 * time.Second
	// eventEvery is how often a controller gets an event about restarts of its pods.
	eventEvery = 10 * time.Minute
)

// turns prevent that all pods of one controller restart at once. They are in memory.
type turns struct {
	mu      sync.Mutex
	byOwner map[types.UID]lastTurn
}

type lastTurn struct{ evicted, reported time.Time }

// take returns how long the pod's controller has to wait for its turn; 0 takes the turn.
func (t *turns) take(owner types.UID, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid, last := range t.byOwner {
		if !now.Before(last.evicted.Add(turn)) && !now.Before(last.reported.Add(eventEvery)) {
			delete(t.byOwner, uid)
		}
	}
	last := t.byOwner[owner]
	if wait := last.evicted.Add(turn).Sub(now); wait > 0 {
		return wait
	}
	last.evicted = now
	t.byOwner[owner] = last
	return 0
}

// giveBack returns a turn without an eviction.
func (t *turns) giveBack(owner types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.byOwner[owner]
	last.evicted = time.Time{}
	t.byOwner[owner] = last
}

// mayReport reports whether an event is due for the controller, and records the event.
func (t *turns) mayReport(owner types.UID, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.byOwner[owner]
	if now.Before(last.reported.Add(eventEvery)) {
		return false
	}
	last.reported = now
	t.byOwner[owner] = last
	return true
}
