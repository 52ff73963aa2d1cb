package services

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
)

// workers is how many services are reconciled at once.
const workers = 4

// SetupWithManager registers the controller. The manager's cache must hold
// NFSServices, and Services and slices with the label publish.ServiceLabel.
// Servers must be a Watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.prepare(controllermetrics.Registry); err != nil {
		return fmt.Errorf("setting up the controller of NFS services: %w", err)
	}
	if w, ok := r.Servers.(*Watches); ok {
		w.changed = func(key types.NamespacedName) { r.ask(key, 0) }
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		r.prober.Run(ctx)
		return nil
	})); err != nil {
		return fmt.Errorf("setting up the controller of NFS services: %w", err)
	}
	published := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return kit.RequestIn(o.GetNamespace(), o.GetLabels()[publish.ServiceLabel])
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("nfs-services").
		For(&v1alpha1.NFSService{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Watches(&corev1.Service{}, published).
		Watches(&discoveryv1.EndpointSlice{}, published).
		WatchesRawSource(r.Observer.Source(func(service types.NamespacedName, _ string) reconcile.Request {
			return reconcile.Request{NamespacedName: service}
		}, counting/4)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.trigger = func(key types.NamespacedName, after time.Duration) {
				queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
			}
			return nil
		})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of NFS services: %w", err)
	}
	return nil
}

// prepare connects the parts and registers the metrics.
func (r *Reconciler) prepare(registry prometheus.Registerer) error {
	var err error
	r.prober = rpc.NewProber(rpc.Probe, func(key probed, result rpc.Result) { r.observe(key.service, key.backend, result) })
	r.metrics, err = newMetrics(r, registry)
	return err
}

// ask requests a pass after a while. Before the controller runs, it does nothing.
func (r *Reconciler) ask(key types.NamespacedName, after time.Duration) {
	r.mu.Lock()
	trigger := r.trigger
	r.mu.Unlock()
	if trigger != nil {
		trigger(key, after)
	}
}
