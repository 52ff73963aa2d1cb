package apply

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
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
	if r.metrics, err = newMetrics(ctrlmetrics.Registry, r.Names); err != nil {
		return fmt.Errorf("registering the metrics of settings: %w", err)
	}
	request := reconcile.Request{NamespacedName: reads.RolloutKey(r.Names)}
	soon := r.window.Handler(request)
	here := kit.InNamespace(r.Names.Namespace)
	driver := kit.OfDriver(func(driver string) bool { return driver == r.Names.Driver })
	b := ctrl.NewControllerManagedBy(mgr).Named("apply-" + longhorn.Name).WithOptions(controller.Options{
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
		Watches(&corev1.Node{}, soon, builder.WithPredicates(kit.Updated(reads.NodeChanged))).
		Watches(&schedulingv1.PriorityClass{}, soon)
	if r.VolumeNetworks {
		b = r.watchRequests(b, soon)
	}
	c, err := b.WatchesRawSource(kit.AtStart(request)).Build(r)
	if err != nil {
		return fmt.Errorf("setting up the controller of settings: %w", err)
	}
	r.watchNetworks = func() error {
		var network unstructured.Unstructured
		network.SetGroupVersionKind(reads.NetworkKind)
		return c.Watch(source.Kind(mgr.GetCache(), client.Object(&network), soon, usableChanges()))
	}
	return nil
}

// usableChanges passes creations, deletions and changes of the config of networks.
func usableChanges() predicate.Predicate {
	config := func(o client.Object) string {
		network, ok := o.(*unstructured.Unstructured)
		if !ok {
			return ""
		}
		return reads.NetworkConfig(network)
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return config(e.ObjectOld) != config(e.ObjectNew) }}
}

// watchRequests watches what may change the volumes' requests: few events of claims and
// PersistentVolumes.
func (r *Reconciler) watchRequests(b *builder.Builder, soon handler.EventHandler) *builder.Builder {
	driver := predicate.NewPredicateFuncs(func(o client.Object) bool {
		switch o := o.(type) {
		case *corev1.PersistentVolume:
			return o.Spec.CSI != nil && o.Spec.CSI.Driver == r.Names.Driver
		case *storagev1.StorageClass:
			return o.Provisioner == r.Names.Driver
		}
		return false
	})
	// Cached objects have no other annotations.
	asks := kit.AnnotationsChanged(rwx.AsksForNetwork)
	return b.
		WatchesMetadata(&corev1.PersistentVolumeClaim{}, soon, builder.WithPredicates(asks)).
		Watches(&corev1.PersistentVolume{}, soon, builder.WithPredicates(driver, predicate.Or[client.Object](asks, kit.Updated(isRebound)))).
		Watches(&storagev1.StorageClass{}, soon, builder.WithPredicates(driver, asks))
}

// isRebound reports whether a PersistentVolume has another claim or class, which may ask for it.
func isRebound(before, after *corev1.PersistentVolume) bool {
	was, is := before.Spec.ClaimRef, after.Spec.ClaimRef
	return (was == nil) != (is == nil) || was != nil && *was != *is || before.Spec.StorageClassName != after.Spec.StorageClassName
}
