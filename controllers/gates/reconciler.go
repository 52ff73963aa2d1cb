// Package gates removes the scheduling gate of fencing from pods, once no lost node holds
// their volumes. It is optional: without the webhook that adds the gate, no pod has one.
package gates

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// Reconciler removes fence.SchedulingGate from pods. A request names a pod.
type Reconciler struct {
	Client client.Client
	// Policy of fencing, as configured.
	Policy  fence.Policy
	Holders *fencingreads.HolderReader
	// Live reads from the API server.
	Live   client.Reader
	Events events.EventRecorder
	Log    *slog.Logger

	// reports has the last report on each waiting pod, by namespace and name.
	reports kit.Once[types.NamespacedName, report]
}

const (
	// recheckAfter is when a waiting pod is checked again without an event.
	recheckAfter = 30 * time.Second
	// retryAfter is when a pod is checked again that was changed meanwhile, or while the watches begin.
	retryAfter = 200 * time.Millisecond
)

// Reconcile checks one pod. Waiting pods are few, so everything is read live.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if !r.Holders.Held.Synced() {
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	err := r.Live.Get(ctx, request.NamespacedName, &pod)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading pod %s: %w", request, err)
	}
	if err != nil || !isGated(&pod) {
		r.reports.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	held, err := r.held(ctx, &pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	if held != nil {
		r.report(&pod, held)
		return ctrl.Result{RequeueAfter: recheckAfter}, nil
	}
	err = r.removeGate(ctx, &pod)
	if kit.IsStale(err) {
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	return ctrl.Result{}, err
}

// held returns why the pod has to wait, or nil. A claim without a volume has no holder.
func (r *Reconciler) held(ctx context.Context, pod *corev1.Pod) (*fence.Held, error) {
	var pods *corev1.PodList // of the namespace, listed for the first protected volume
	for _, claim := range reads.Claims(pod) {
		v, err := r.Holders.BoundVolume(ctx, pod.Namespace, claim)
		if err != nil {
			return nil, err
		}
		if v == nil || r.Policy.Mode(v.Driver) == fence.ModeOff {
			continue
		}
		holders, err := r.Holders.Holders(ctx, *v)
		if err != nil {
			return nil, err
		}
		if pods == nil {
			pods = &corev1.PodList{}
			if err := r.Live.List(ctx, pods, client.InNamespace(pod.Namespace)); err != nil {
				return nil, fmt.Errorf("listing the pods of namespace %s: %w", pod.Namespace, err)
			}
		}
		users, err := r.users(ctx, pods, *v, claim, holders)
		if err != nil {
			return nil, err
		}
		if held := fence.Attach(*v, "", append(holders, users...), r.Policy); held != nil {
			return held, nil
		}
	}
	return nil, nil
}

// users returns the nodes where pods use the claim of a volume, without the known holders. Until
// a node's record names the volume, only pods show where a volume without attachment is in use.
func (r *Reconciler) users(ctx context.Context, pods *corev1.PodList, v fence.Volume, claim string, known []fence.Holder) ([]fence.Holder, error) {
	var users []fence.Holder
	for i := range pods.Items {
		node := pods.Items[i].Spec.NodeName
		onNode := func(h fence.Holder) bool { return h.Node.Name == node }
		if node == "" || reads.Ended(&pods.Items[i]) || slices.ContainsFunc(known, onNode) || slices.ContainsFunc(users, onNode) || !slices.Contains(reads.Claims(&pods.Items[i]), claim) {
			continue
		}
		holders, err := r.Holders.HoldersOf(ctx, v, node)
		if err != nil {
			return nil, err
		}
		users = append(users, holders...)
	}
	return users, nil
}

func isFenceGate(g corev1.PodSchedulingGate) bool { return g.Name == fence.SchedulingGate }

func isGated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, isFenceGate)
}

// removeGate fails with a conflict if the pod has changed since Reconcile read the pod.
// The patch names the gate to delete, so it leaves the gates of others alone.
func (r *Reconciler) removeGate(ctx context.Context, pod *corev1.Pod) error {
	released := pod.DeepCopy()
	released.Spec.SchedulingGates = slices.DeleteFunc(released.Spec.SchedulingGates, isFenceGate)
	delete(released.Labels, fence.GatedLabel)
	patch := client.StrategicMergeFrom(pod, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, released, patch); err != nil {
		return fmt.Errorf("removing the scheduling gate of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.Log.Info("removed the scheduling gate of a pod", "namespace", pod.Namespace, "pod", pod.Name)
	r.Events.Eventf(pod, nil, corev1.EventTypeNormal, "FenceGateLifted", "Lift", "no lost node holds the volumes of the pod any more")
	return nil
}

// report has the UID since a later pod of the same name needs its own report.
type report struct {
	uid     types.UID
	message string
}

// report writes an event that says why the pod waits, once for each reason.
func (r *Reconciler) report(pod *corev1.Pod, held *fence.Held) {
	if !r.reports.IsNew(client.ObjectKeyFromObject(pod), report{pod.UID, held.Message}) {
		return
	}
	r.Log.Info("a pod waits for a fence", "namespace", pod.Namespace, "pod", pod.Name, "node", held.Node, "reason", held.Reason, "message", held.Message)
	r.Events.Eventf(pod, nil, corev1.EventTypeWarning, held.Reason, "Wait", "%s", kit.Note(held.Message))
}
