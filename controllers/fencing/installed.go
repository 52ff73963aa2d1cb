package fencing

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
)

// onceInstalled watches a kind of csi-addons as soon as the kind is installed. Fencing keeps its
// ledger and holds volumes without csi-addons, so the controller starts without the kind.
func (r *Reconciler) onceInstalled(objects cache.Cache, kind client.Object, to handler.EventHandler, where ...predicate.Predicate) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		go func() {
			reported := false
			err := wait.PollUntilContextCancel(ctx, lookForCSIAddons, true, func(ctx context.Context) (bool, error) {
				_, err := objects.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
				if err != nil && !reported {
					r.Log.Warn("waiting for a kind to be installed", "kind", fmt.Sprintf("%T", kind), "installed", !meta.IsNoMatchError(err), "error", err.Error())
					reported = true
				}
				return err == nil, nil
			})
			if err != nil {
				return // the controller ends
			}
			if _, ok := kind.(*csiaddons.CSIAddonsNode); ok {
				if err := r.Reader.IndexAddons(ctx, objects); err != nil {
					r.Log.Error("could not index", "kind", fmt.Sprintf("%T", kind), "error", err)
				}
			}
			if err := source.Kind(objects, kind, to, where...).Start(ctx, queue); err != nil {
				r.Log.Error("could not watch", "kind", fmt.Sprintf("%T", kind), "error", err)
			}
		}()
		return nil
	})
}
