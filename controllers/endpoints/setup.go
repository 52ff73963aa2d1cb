package endpoints

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// SetupWithManager registers the controller. Published objects are watched too, so that changes by
// others are corrected.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.overwritten = map[string]*overwritten{}
	byLabel := func(key string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return kit.RequestIn(o.GetNamespace(), o.GetLabels()[key])
		})
	}
	here := builder.WithPredicates(kit.InNamespace(r.Names.Namespace))
	err := ctrl.NewControllerManagedBy(mgr).Named("endpoints-"+longhorn.Name).
		For(&corev1.Service{}, here).
		Watches(&corev1.Pod{}, byLabel(r.Names.VolumeLabel), here).
		Watches(&discoveryv1.EndpointSlice{}, byLabel(discoveryv1.LabelServiceName), here).
		//lint:ignore SA1019 for the readers of the deprecated API
		Watches(&corev1.Endpoints{}, &handler.EnqueueRequestForObject{}, here).
		Watches(&v1alpha1.NetworkRollout{}, handler.EnqueueRequestsFromMapFunc(r.unrecorded), here, builder.WithPredicates(kit.Updated(isClientNetworkMoved))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the endpoints controller: %w", err)
	}
	return nil
}

// isClientNetworkMoved reports whether a record has another network of the clients.
func isClientNetworkMoved(before, after *v1alpha1.NetworkRollout) bool {
	return before.Status.Recorded != after.Status.Recorded || before.Status.Clients.Network != after.Status.Clients.Network
}

// unrecorded are the headless Services without a recorded network: they follow the clients' network.
func (r *Reconciler) unrecorded(ctx context.Context, _ client.Object) []reconcile.Request {
	services, err := r.Cached.Services(ctx)
	if err != nil {
		r.Log.Error("could not list Services without a recorded network", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for _, s := range services {
		if s.Headless() && s.Recorded.IsZero() {
			requests = append(requests, kit.RequestIn(s.Namespace, s.Name)...)
		}
	}
	return requests
}
