package attach

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
)

// workers is how many attachments are written at once.
const workers = 32

// SetupWithManager registers the attacher, if it has a driver to attach for.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ours := func(o client.Object) bool {
		va, ok := o.(*storagev1.VolumeAttachment)
		if ok {
			_, ok = r.Drivers[va.Spec.Attacher]
		}
		return ok
	}
	err := ctrl.NewControllerManagedBy(mgr).Named("nfs-attacher").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		For(&storagev1.VolumeAttachment{}, builder.WithPredicates(predicate.NewPredicateFuncs(ours))).
		WatchesRawSource(r.Observer.Source(nil, 0)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the attacher: %w", err)
	}
	return nil
}

// SetupWithManager registers the annotator, if a driver's annotations are to be
// written.
func (a *Annotator) SetupWithManager(mgr ctrl.Manager) error {
	var keys []string
	for name, mode := range a.Annotations {
		if mode == config.NodeAnnotationsWrite {
			keys = append(keys, csi.AddressKey(name))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	annotated := kit.Updated(func(before, after *corev1.Node) bool {
		return slices.ContainsFunc(keys, func(k string) bool { return before.Annotations[k] != after.Annotations[k] })
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("nfs-node-annotations").
		For(&corev1.Node{}, builder.WithPredicates(annotated)).
		WatchesRawSource(a.Observer.Source(func(_ types.NamespacedName, node string) reconcile.Request {
			return reconcile.Request{NamespacedName: types.NamespacedName{Name: node}}
		}, 0)).
		Complete(a)
	if err != nil {
		return fmt.Errorf("setting up the annotations of nodes: %w", err)
	}
	return nil
}
