package fencing

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// workers look at nodes side by side. A rack that is lost takes little longer than a node.
const workers = 64

// SetupWithManager registers the controller. Whatever may change a decision
// brings an event.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	var err error
	if r.metrics, err = newMetrics(ctrlmetrics.Registry, r.statuses); err != nil {
		return fmt.Errorf("registering the metrics of fencing: %w", err)
	}
	r.asked = newAsked()
	if err := mgr.Add(manager.RunnableFunc(r.readLeases)); err != nil {
		return fmt.Errorf("adding the reading of Leases: %w", err)
	}
	everyNode := handler.EnqueueRequestsFromMapFunc(r.everyNode)
	err = ctrl.NewControllerManagedBy(mgr).Named("fencing").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](behind, longestRetry),
		}).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(r.observeNodes(), kit.Updated(fencingreads.FenceNodeChanged))).
		Watches(&v1alpha1.NodeFence{}, handler.EnqueueRequestsFromMapFunc(r.recordAndWaiting), builder.WithPredicates(kit.FenceRecordChanged())).
		WatchesRawSource(source.Func(r.watchAttachments)).
		Watches(&storagev1.CSINode{}, &handler.EnqueueRequestForObject{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(ofPod), builder.WithPredicates(r.here(), kit.Changed())).
		Watches(&storagev1.StorageClass{}, everyNode, builder.WithPredicates(r.classes(), kit.Changed())).
		Watches(&storagev1.CSIDriver{}, everyNode, builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool { return r.Reader.Protects(o.GetName()) }))).
		WatchesRawSource(r.onceInstalled(mgr.GetCache(), &csiaddons.NetworkFence{}, handler.EnqueueRequestsFromMapFunc(r.ofFence))).
		WatchesRawSource(r.onceInstalled(mgr.GetCache(), &csiaddons.NetworkFenceClass{}, everyNode)).
		WatchesRawSource(r.onceInstalled(mgr.GetCache(), &csiaddons.CSIAddonsNode{}, handler.EnqueueRequestsFromMapFunc(r.ofClient), r.here(), kit.Changed())).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the fencing controller: %w", err)
	}
	return nil
}

// watchAttachments brings an event whenever a node gets or loses an attachment. Workers begin once the holdings are synced.
func (r *Reconciler) watchAttachments(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.lookAt = func(node string) {
		for _, request := range kit.Request(node) {
			queue.Add(request)
		}
	}
	r.Held.OnAttachment(r.lookAt)
	return wait.PollUntilContextCancel(ctx, behind, true, func(context.Context) (bool, error) { return r.Held.Synced(), nil })
}

func ofPod(_ context.Context, o client.Object) []reconcile.Request {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	return kit.Request(pod.Spec.NodeName)
}

// recordAndWaiting is the record's node, and all nodes that may wait for it: a node that shares an
// address is readmitted with the last one, which no fence is to keep then.
func (r *Reconciler) recordAndWaiting(ctx context.Context, o client.Object) []reconcile.Request {
	record, ok := o.(*v1alpha1.NodeFence)
	if !ok {
		return nil
	}
	names := []string{record.Spec.NodeName}
	if fence.InIncident(record.Spec) && !fence.IsClosed(record.Spec) {
		names = append(names, r.records(ctx, func(n *v1alpha1.NodeFence) bool { return len(n.Spec.Fences) > 0 }, inIncident)...)
	}
	return kit.Request(names...)
}

// ofFence are the nodes whose record names the NetworkFence. A NetworkFence that no record names
// may block any incident.
func (r *Reconciler) ofFence(ctx context.Context, o client.Object) []reconcile.Request {
	names := r.records(ctx, func(n *v1alpha1.NodeFence) bool {
		return slices.ContainsFunc(n.Spec.Fences, func(f v1alpha1.Fence) bool { return f.Name == o.GetName() })
	}, inIncident)
	if len(names) == 0 {
		names = append(r.records(ctx, every, inIncident), o.GetLabels()[fence.NodeLabel])
	}
	return kit.Request(names...)
}

// ofClient is the node whose clients csi-addons reports, by the driver's node ID.
func (r *Reconciler) ofClient(ctx context.Context, o client.Object) []reconcile.Request {
	n, ok := o.(*csiaddons.CSIAddonsNode)
	if !ok || !r.Reader.Protects(n.Spec.Driver.Name) {
		return nil
	}
	names, err := r.Reader.NodesByID(ctx, n.Spec.Driver.Name, n.Spec.Driver.NodeID)
	if err != nil {
		r.Log.Error("could not find a node by its driver's node ID", "nodeID", n.Spec.Driver.NodeID, "error", err)
	}
	return kit.Request(names...)
}

func (r *Reconciler) everyNode(ctx context.Context, _ client.Object) []reconcile.Request {
	var list corev1.NodeList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Error("could not list nodes", "error", err)
		return nil
	}
	names := r.records(ctx, every)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return kit.Request(names...)
}

// inIncident selects the records with fences, among others.
var inIncident = client.HasLabels{fence.IncidentLabel}

func every(*v1alpha1.NodeFence) bool { return true }

// records are the nodes with a matching record.
func (r *Reconciler) records(ctx context.Context, match func(*v1alpha1.NodeFence) bool, which ...client.ListOption) []string {
	var list v1alpha1.NodeFenceList
	if err := r.Client.List(ctx, &list, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		r.Log.Error("could not list NodeFences", "error", err)
		return nil
	}
	var names []string
	for i := range list.Items {
		if match(&list.Items[i]) {
			names = append(names, list.Items[i].Spec.NodeName)
		}
	}
	return names
}

// here passes objects in the namespaces of the storage systems.
func (r *Reconciler) here() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return r.Reader.Within(o.GetNamespace()) })
}

func (r *Reconciler) classes() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		c, ok := o.(*storagev1.StorageClass)
		return ok && r.Reader.Protects(c.Provisioner)
	})
}
