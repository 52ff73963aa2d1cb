package rollout

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// SetupWithManager registers the controller. Whatever may open a gate is an event: nothing waits
// for a resync.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.countRestarts(ctrlmetrics.Registry); err != nil {
		return err
	}
	request := reconcile.Request{NamespacedName: cluster.RolloutKey(r.Profile)}
	soon := r.window.Handler(request)
	here := kit.InNamespace(r.Profile.Namespace)
	driver := kit.OfDriver(func(driver string) bool { return driver == r.Profile.Driver })
	b := ctrl.NewControllerManagedBy(mgr).Named("rollout-" + r.Profile.Name)
	for _, kind := range []client.Object{
		&v1alpha1.NetworkRollout{}, &longhorn.Volume{}, &longhorn.VolumeAttachment{},
		&appsv1.DaemonSet{}, &corev1.Pod{}, &corev1.Service{},
	} {
		b = b.Watches(kind, soon, builder.WithPredicates(here, kit.Changed()))
	}
	for _, kind := range []client.Object{&v1alpha1.Setting{}, &longhorn.Setting{}} {
		// Only their values are read.
		b = b.Watches(kind, soon, builder.WithPredicates(here, predicate.GenerationChangedPredicate{}))
	}
	b = b.Watches(&storagev1.VolumeAttachment{}, soon, builder.WithPredicates(driver, kit.Changed()))
	if r.VolumeNetworks {
		b = r.watchRequests(b, soon)
	}
	b = b.WatchesRawSource(kit.AtStart(request))
	c, err := b.Build(r)
	if err != nil {
		return fmt.Errorf("setting up the roll-out controller: %w", err)
	}
	r.watchNetworks = func() error {
		var network metav1.PartialObjectMetadata
		network.SetGroupVersionKind(cluster.NetworkKind)
		return c.Watch(source.Kind(mgr.GetCache(), client.Object(&network), soon, comesOrGoes()))
	}
	return nil
}
