package apply

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

const (
	// mostBackoff limits the pause after errors: other settings wait for the retry too.
	leastBackoff = 50 * time.Millisecond
	mostBackoff  = 30 * time.Second
)

// SetupWithManager registers the controller. Whatever may open a gate is an event: nothing waits
// for a resync.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	var err error
	if r.metrics, err = newMetrics(ctrlmetrics.Registry, r.Profile); err != nil {
		return fmt.Errorf("registering the metrics of settings: %w", err)
	}
	request := reconcile.Request{NamespacedName: cluster.RolloutKey(r.Profile)}
	soon := r.window.Handler(request)
	here := kit.InNamespace(r.Profile.Namespace)
	driver := kit.OfDriver(func(driver string) bool { return driver == r.Profile.Driver })
	b := ctrl.NewControllerManagedBy(mgr).Named("apply-" + r.Profile.Name).WithOptions(controller.Options{
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](leastBackoff, mostBackoff),
	})
	for _, kind := range []client.Object{
		&v1alpha1.NetworkRollout{}, &v1alpha1.Setting{}, &longhorn.Setting{}, &longhorn.Volume{}, &longhorn.VolumeAttachment{},
		&longhorn.InstanceManager{}, &longhorn.Engine{}, &longhorn.Replica{}, &longhorn.BackingImageManager{}, &longhorn.Node{},
		&appsv1.DaemonSet{}, &appsv1.Deployment{}, &corev1.Pod{}, &corev1.Service{},
	} {
		b = b.Watches(kind, soon, builder.WithPredicates(here, kit.Changed()))
	}
	b = b.Watches(&storagev1.VolumeAttachment{}, soon, builder.WithPredicates(driver, kit.Changed())).
		Watches(&corev1.Node{}, soon, builder.WithPredicates(kit.Updated(cluster.NodeChanged))).
		Watches(&schedulingv1.PriorityClass{}, soon)
	if r.VolumeNetworks {
		b = r.watchRequests(b, soon)
	}
	c, err := b.WatchesRawSource(kit.AtStart(request)).Build(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of settings: %w", err)
	}
	r.watchNetworks = func() error {
		var network metav1.PartialObjectMetadata
		network.SetGroupVersionKind(cluster.NetworkKind)
		return c.Watch(source.Kind(mgr.GetCache(), client.Object(&network), soon, comesOrGoes()))
	}
	return nil
}
