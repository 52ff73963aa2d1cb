package apply

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// comesOrGoes passes creations and deletions.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// watchRequests watches what may change the volumes' requests: few events of claims and
// PersistentVolumes.
func (r *Reconciler) watchRequests(b *builder.Builder, soon handler.EventHandler) *builder.Builder {
	driver := predicate.NewPredicateFuncs(func(o client.Object) bool {
		switch o := o.(type) {
		case *corev1.PersistentVolume:
			return o.Spec.CSI != nil && o.Spec.CSI.Driver == r.Profile.Driver
		case *storagev1.StorageClass:
			return o.Provisioner == r.Profile.Driver
		}
		return false
	})
	// Cached objects have no other annotations.
	asks := kit.AnnotationsChanged(storage.AsksForNetwork)
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
