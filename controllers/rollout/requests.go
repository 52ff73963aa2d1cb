package rollout

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fairlead-io/fairlead/storage"
)

// watchRequests brings an event for whatever may change what volumes ask for. A
// cluster has many claims and PersistentVolumes; few events of them say anything new.
func (r *Reconciler) watchRequests(b *builder.Builder, one handler.EventHandler) *builder.Builder {
	driver := predicate.NewPredicateFuncs(func(o client.Object) bool {
		switch o := o.(type) {
		case *corev1.PersistentVolume:
			return o.Spec.CSI != nil && o.Spec.CSI.Driver == r.Profile.Driver
		case *storagev1.StorageClass:
			return o.Provisioner == r.Profile.Driver
		}
		return false
	})
	return b.
		WatchesMetadata(&corev1.PersistentVolumeClaim{}, one, builder.WithPredicates(asksAnew())).
		Watches(&corev1.PersistentVolume{}, one, builder.WithPredicates(driver, predicate.Or[client.Object](asksAnew(), boundAnew()))).
		Watches(&storagev1.StorageClass{}, one, builder.WithPredicates(driver, asksAnew()))
}

// asksAnew lets through what changes the annotations that ask. In the cache an
// object has no others.
func asksAnew() predicate.Predicate {
	asks := func(o client.Object) bool { return storage.AsksForNetwork(o.GetAnnotations()) }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return asks(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return asks(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
	}
}

// boundAnew lets through PersistentVolumes that come, go or change their claim:
// claim and class may ask for them.
func boundAnew() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*corev1.PersistentVolume)
		pv, also := e.ObjectNew.(*corev1.PersistentVolume)
		if !ok || !also {
			return false
		}
		was, is := old.Spec.ClaimRef, pv.Spec.ClaimRef
		return (was == nil) != (is == nil) || was != nil && *was != *is || old.Spec.StorageClassName != pv.Spec.StorageClassName
	}}
}
