package apply

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/predicates"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
)

const (
	// Errors are tried again ever more seldom, up to mostBackoff: one may last, and
	// what waits for its time beside it must not.
	leastBackoff = 50 * time.Millisecond
	mostBackoff  = 30 * time.Second
)

// SetupWithManager registers the controller. Whatever may open a gate brings an
// event: nothing waits for a resync.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	var err error
	if r.metrics, err = newMetrics(ctrlmetrics.Registry, r.Profile.Name); err != nil {
		return fmt.Errorf("registering the metrics of settings: %w", err)
	}
	request := reconcile.Request{NamespacedName: cluster.RolloutKey(r.Profile)}
	soon := r.window.Handler(request)
	here := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == r.Profile.Namespace })
	driver := predicate.NewPredicateFuncs(func(o client.Object) bool {
		va, ok := o.(*storagev1.VolumeAttachment)
		return ok && va.Spec.Attacher == r.Profile.Driver
	})
	b := ctrl.NewControllerManagedBy(mgr).Named("apply-" + r.Profile.Name).WithOptions(controller.Options{
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastBackoff, mostBackoff),
	})
	for _, kind := range []client.Object{
		&v1alpha1.NetworkRollout{}, &v1alpha1.Setting{}, &longhorn.Setting{}, &longhorn.Volume{}, &longhorn.VolumeAttachment{},
		&longhorn.InstanceManager{}, &longhorn.Engine{}, &longhorn.Replica{}, &longhorn.BackingImageManager{}, &longhorn.Node{},
		&appsv1.DaemonSet{}, &appsv1.Deployment{}, &corev1.Pod{}, &corev1.Service{},
	} {
		b = b.Watches(kind, soon, builder.WithPredicates(here, predicates.Changed()))
	}
	b = b.Watches(&storagev1.VolumeAttachment{}, soon, builder.WithPredicates(driver, predicates.Changed())).
		Watches(&corev1.Node{}, soon, builder.WithPredicates(predicates.NodeChanged(cluster.NodeChanged))).
		Watches(&schedulingv1.PriorityClass{}, soon)
	// Once at the start, also where there is no object yet that could bring an event.
	b = b.WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request)
		return nil
	}))
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up the controller of settings: %w", err)
	}
	return nil
}
