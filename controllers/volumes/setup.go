package volumes

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.repairs = map[string]repair{}
	here := kit.InNamespace(r.Profile.Namespace)
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return kit.RequestIn(o.GetNamespace(), o.GetLabels()[r.Profile.VolumeLabel])
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("volumes-"+r.Profile.Name).
		For(&longhorn.ShareManager{}, builder.WithPredicates(here)).
		Watches(&corev1.Service{}, byLabel, builder.WithPredicates(here)).
		Watches(&corev1.Pod{}, byLabel, builder.WithPredicates(here)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the volumes controller: %w", err)
	}
	return nil
}
