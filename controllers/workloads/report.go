package workloads

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// remember keeps the client's network namespace on its pod, so that a later leader detects a new
// namespace.
func (r *Reconciler) remember(ctx context.Context, c storage.Client, namespace storage.NetworkNamespace, policy storage.Restarts) error {
	mounts := !c.Network.IsZero() || policy.Mounting.Place == storage.InClient || policy.Mounting.Place == storage.InEither
	if c.Recorded.String() == namespace.String() || !mounts {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": c.UID, "annotations": map[string]string{storage.NamespaceAnnotation: namespace.String()},
	}})
	if err != nil {
		return fmt.Errorf("recording the network namespace of pod %s: %w", c.Pod, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.Profile.Namespace, Name: c.Pod}}
	err = r.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
	if kit.IsStale(err) {
		return nil // the pod was replaced, which is an event
	}
	if err != nil {
		return fmt.Errorf("recording the network namespace of pod %s: %w", c.Pod, err)
	}
	return nil
}

// report emits an event once for a pod that only its owner can restart.
func (r *Reconciler) report(n *node, pod *corev1.Pod, v storage.Verdict) {
	if !n.reported.IsNew(pod.UID, v.Reason) {
		return
	}
	reason := "DeadMount"
	if v.State == storage.Unsure {
		reason = "MountUnsure"
	}
	r.Log.Warn("did not restart a workload", "namespace", pod.Namespace, "pod", pod.Name, "node", pod.Spec.NodeName, "state", v.State, "reason", v.Reason, "detail", v.Detail)
	r.Events.Eventf(pod, nil, corev1.EventTypeWarning, reason, "Judge", "%s", kit.Note(v.Detail))
}

// note logs and counts every verdict.
func (r *Reconciler) note(pod *corev1.Pod, v storage.Verdict) {
	if v.Reason == storage.ReasonOtherDriver {
		return // most pods of a cluster
	}
	r.metrics.judged(v)
	r.Log.Debug("judged", "namespace", pod.Namespace, "pod", pod.Name, "node", pod.Spec.NodeName, "state", v.State, "reason", v.Reason, "detail", v.Detail)
}
