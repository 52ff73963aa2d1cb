package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// remember keeps the client's network namespace on its pod, so that a later leader detects a new
// namespace, and tells which pods were created in it.
func (r *Reconciler) remember(ctx context.Context, c rwx.Client, namespace rwx.NetworkNamespace, policy rwx.Restarts) (rwx.NetworkNamespace, error) {
	if mounts := !c.Network.IsZero() || policy.Mounting.Place == rwx.InClient || policy.Mounting.Place == rwx.InEither; !mounts {
		return namespace, nil
	}
	if namespace.Noted.IsZero() {
		var err error
		if namespace.Noted, err = r.apiTime(ctx); err != nil {
			return namespace, err
		}
	}
	if c.Recorded.String() == namespace.String() {
		return namespace, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": c.UID, "annotations": map[string]string{rwx.NamespaceAnnotation: namespace.String()},
	}})
	if err != nil {
		return namespace, fmt.Errorf("recording the network namespace of pod %s: %w", c.Pod, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Names.Namespace, Name: c.Pod}}
	err = r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
	if kit.IsStale(err) {
		return namespace, nil // the pod was replaced, which is an event
	}
	if err != nil {
		return namespace, fmt.Errorf("recording the network namespace of pod %s: %w", c.Pod, err)
	}
	return namespace, nil
}

// apiTime is the API server's time, to the second, by which it stamps what is created. A review of oneself changes nothing, and
// everybody may ask for one (v1.30 to v1.37: pkg/registry/authentication/selfsubjectreview/rest.go).
func (r *Reconciler) apiTime(ctx context.Context) (time.Time, error) {
	var review authenticationv1.SelfSubjectReview
	err := r.Client.Create(ctx, &review)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsForbidden(err) {
		return time.Time{}, nil // Kubernetes before 1.28, or a policy
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("asking the API server for its time: %w", err)
	}
	return review.CreationTimestamp.Time, nil
}

// report emits an event once for a pod that only its owner can restart.
func (r *Reconciler) report(n *node, pod *corev1.Pod, v rwx.Verdict) {
	if !n.reported.IsNew(pod.UID, v.Reason) {
		return
	}
	reason := "DeadMount"
	if v.State == rwx.Unsure {
		reason = "MountUnsure"
	}
	r.Log.Warn("did not restart a workload", "namespace", pod.Namespace, "pod", pod.Name, "node", pod.Spec.NodeName, "state", v.State, "reason", v.Reason, "detail", v.Detail)
	r.Events.Eventf(pod, nil, corev1.EventTypeWarning, reason, "Judge", "%s", kit.Note(v.Detail))
}

// note logs and counts every verdict.
func (r *Reconciler) note(pod *corev1.Pod, v rwx.Verdict) {
	if v.Reason == rwx.ReasonOtherDriver {
		return // most pods of a cluster
	}
	r.metrics.judged(v)
	r.Log.Debug("judged", "namespace", pod.Namespace, "pod", pod.Name, "node", pod.Spec.NodeName, "state", v.State, "reason", v.Reason, "detail", v.Detail)
}

// patience is how long a node may be without a mounting client before it is reported.
const patience = 2 * time.Minute

// waiting is a node whose dead mounts are not detected, because no client can mount there.
type waiting struct {
	since    time.Time
	reported string
}

// wait for a client of the node that can mount. It returns when to check again.
func (r *Reconciler) wait(node string, clients []rwx.Client, reason string, policy rwx.Restarts) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiting[node]
	if w.since.IsZero() {
		w.since = policy.Now
	}
	defer func() { r.waiting[node] = w }()
	if left := w.since.Add(patience).Sub(policy.Now); left > 0 {
		return left
	}
	r.metrics.waiting(node, reason)
	if w.reported == reason {
		return 0 // the end of the wait is an event
	}
	w.reported = reason
	event, why := "NoReadyClient", "no CSI plugin pod is Ready"
	if !policy.Applied.IsZero() {
		why = fmt.Sprintf("no CSI plugin pod is Ready with an address that Multus reports on %s", policy.Applied.Network)
	}
	if reason == rwx.ReasonSeveralClients {
		event, why = "SeveralClients", "there are several CSI plugin pods: which of them made a mount is unknown"
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Names.Namespace, Name: clients[0].Pod, UID: types.UID(clients[0].UID)}}
	r.Log.Warn("node without a client that can mount", "node", node, "reason", reason, "since", w.since)
	r.Events.Eventf(pod, nil, corev1.EventTypeWarning, event, "Look",
		"on node %s %s, for more than %s: workloads whose mount died are not restarted there", node, why, patience)
	return 0
}

// waited ends the wait.
func (r *Reconciler) waited(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, node)
	r.metrics.waiting(node, "")
}
