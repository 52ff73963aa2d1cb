package tainting

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

// SetupWithManager registers the controller, unless automatic tainting is off. The
// manager's cache must hold nodes with their taints, labels and Ready condition, its
// time included, and NodeFences.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.Tainting.Check(); err != nil {
		return fmt.Errorf("setting up automatic tainting: %w", err)
	}
	if r.Tainting.Defaulted().Mode == taint.Off {
		return nil
	}
	if err := r.prepare(controllermetrics.Registry); err != nil {
		return fmt.Errorf("setting up automatic tainting: %w", err)
	}
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: "nodes"}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("tainting").
		// Two who count own taints at once would each find room for one more.
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(true), MaxConcurrentReconciles: 1}).
		Watches(&corev1.Node{}, all, builder.WithPredicates(nodeChanged{})).
		Watches(&v1alpha1.NodeFence{}, all, builder.WithPredicates(recordChanged{})).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up automatic tainting: %w", err)
	}
	return nil
}

// prepare makes what is kept from one look to the next.
func (r *Reconciler) prepare(registry prometheus.Registerer) error {
	var err error
	r.given, r.told = map[string]string{}, map[string]told{}
	r.metrics, err = newMetrics(registry)
	return err
}

// nodeChanged passes changes that a first look goes by. A kubelet writes its node's
// status every few minutes, mostly with other things.
type nodeChanged struct{ predicate.Funcs }

func (nodeChanged) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Node)
	after, is := e.ObjectNew.(*corev1.Node)
	if !ok || !is {
		return false
	}
	was, now := nodeOf(before), nodeOf(after)
	return was.Node.Ready != now.Node.Ready || was.Node.Unknown != now.Node.Unknown || was.Node.OutOfService != now.Node.OutOfService || was.Node.OwnTaint != now.Node.OwnTaint ||
		was.Cordoned != now.Cordoned || was.OptedOut != now.OptedOut || !maps.Equal(was.Labels, now.Labels)
}

// recordChanged passes changes of how far a node's incident is, and of what it holds.
type recordChanged struct{ predicate.Funcs }

func (recordChanged) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.NodeFence)
	after, is := e.ObjectNew.(*v1alpha1.NodeFence)
	return ok && is && (before.Status.Phase != after.Status.Phase || before.Status.Incident != after.Status.Incident ||
		!before.Status.Tainted.Equal(after.Status.Tainted) || !slices.Equal(before.Status.Volumes, after.Status.Volumes))
}
