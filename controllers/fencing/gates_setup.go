package fencing

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
	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/controllers/predicates"
	"github.com/fairlead-io/fairlead/fence"
)

// SetupWithManager registers the controller. Changes of a node or its record may release a pod.
func (g *Gates) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(g.all)
	err := ctrl.NewControllerManagedBy(mgr).Named("fencing-gates").
		For(&corev1.Pod{}, builder.WithPredicates(gated())).
		Watches(&v1alpha1.NodeFence{}, all).
		Watches(&corev1.Node{}, all, builder.WithPredicates(predicates.NodeChanged(cluster.FenceNodeChanged))).
		Complete(g)
	if err != nil {
		return fmt.Errorf("setting up the controller of scheduling gates: %w", err)
	}
	return nil
}

// gated passes pods that wait, and that did until now: it is forgotten what they were
// told. The label is for the cache, and anybody may set it: it says nothing.
func gated() predicate.Predicate {
	waits := func(o client.Object) bool {
		pod, ok := o.(*corev1.Pod)
		return ok && gateOf(pod) >= 0
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return waits(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return waits(e.ObjectOld) || waits(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// all pods that wait; mostly there is none.
func (g *Gates) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var list corev1.PodList
	if err := g.Client.List(ctx, &list, client.MatchingLabels{fence.GatedLabel: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		g.Log.Error("could not look for pods that wait", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if gateOf(&list.Items[i]) >= 0 {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
