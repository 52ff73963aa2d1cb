package gates

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// SetupWithManager registers the controller. Changes of a node or its record may release a pod.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	waits := func(o client.Object) []string { return []string{o.GetLabels()[fence.GatedLabel]} }
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, fence.GatedLabel, waits); err != nil {
		return fmt.Errorf("indexing the pods that wait: %w", err)
	}
	all := handler.EnqueueRequestsFromMapFunc(r.all)
	err := ctrl.NewControllerManagedBy(mgr).Named("fencing-gates").
		For(&corev1.Pod{}, builder.WithPredicates(gated())).
		Watches(&v1alpha1.NodeFence{}, all, builder.WithPredicates(kit.FenceRecordChanged())).
		Watches(&corev1.Node{}, all, builder.WithPredicates(kit.Updated(fencingreads.FenceNodeChanged))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of scheduling gates: %w", err)
	}
	return nil
}

// gated passes pods that have the gate, or had it before the event: their reports are then
// forgotten. The label only selects pods for the cache; any user may set the label.
func gated() predicate.Predicate {
	has := func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && isGated(pod)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return has(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return has(e.ObjectOld) || has(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// all returns a request for each pod that waits; mostly there is none.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list corev1.PodList
	if err := r.Client.List(ctx, &list, client.MatchingFields{fence.GatedLabel: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.Error("could not list the pods that wait", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if isGated(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
