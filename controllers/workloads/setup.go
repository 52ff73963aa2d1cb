// Package workloads restarts the workload pods whose NFS mount has died.
//
// A mount that was made in the network namespace of a CSI plugin pod dies with
// that namespace, and only a new workload pod mounts the volume again. Which mounts
// are dead is decided by rwx.Judge; this package looks at a node each time its
// plugin pod is Ready with another network namespace than before, and evicts.
//
// The pods of a node are listed live, once for each namespace of its client and
// while something is left to do there; they are not cached. Pods that are not on
// that first list were mounted by the client that is there now. Pods that only wait
// for their turn are evicted as they were listed, or listed again if they have changed.
package workloads

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// workers check nodes at the same time: an eviction mostly waits for the API server.
const workers = 8

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	r.init()
	var err error
	if r.metrics, err = newMetrics(controllermetrics.Registry); err != nil {
		return fmt.Errorf("setting up the workloads controller: %w", err)
	}
	isClient := labels.SelectorFromSet(r.Names.ClientLabels)
	clients := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == r.Names.Namespace && isClient.Matches(labels.Set(o.GetLabels()))
	})
	here := kit.InNamespace(r.Names.Namespace)
	everywhere := handler.EnqueueRequestsFromMapFunc(r.allNodes)
	b := ctrl.NewControllerManagedBy(mgr).Named("workloads-"+longhorn.Name).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			pod, ok := o.(*corev1.Pod)
			if !ok {
				return nil
			}
			return kit.Request(pod.Spec.NodeName)
		}), builder.WithPredicates(clients)).
		// Values in effect change for all nodes at once; an irrelevant change is little work.
		Watches(&v1alpha1.Setting{}, everywhere, builder.WithPredicates(here, predicate.GenerationChangedPredicate{})).
		Watches(&longhorn.Setting{}, everywhere, builder.WithPredicates(here, kit.Updated(valueChanged))).
		Watches(&v1alpha1.NetworkRollout{}, everywhere, builder.WithPredicates(here, kit.Updated(recordChanged)))
	if r.DeadMounts {
		b = b.Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.nodesOf), builder.WithPredicates(here, kit.Updated(serverMoved), onlyUpdates))
	}
	if r.OnRequest {
		b = b.Watches(&longhorn.Volume{}, handler.EnqueueRequestsFromMapFunc(r.nodesOf), builder.WithPredicates(here, kit.Updated(remountRequested)))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up the workloads controller: %w", err)
	}
	return nil
}

func (r *Reconciler) init() {
	r.recorded = map[string]map[types.UID]string{}
	r.nodes, r.waiting, r.turns.byOwner = map[string]*node{}, map[string]waiting{}, map[types.UID]lastTurn{}
}

// allNodes are the nodes with a client.
func (r *Reconciler) allNodes(ctx context.Context, _ client.Object) []reconcile.Request {
	clients, err := r.Cached.Clients(ctx)
	if err != nil {
		r.Log.Error("could not list nodes", "error", err)
		return nil
	}
	var requests []reconcile.Request
	for _, c := range clients {
		requests = append(requests, kit.Request(c.Node)...)
	}
	return requests
}

// nodesOf are the nodes to which a volume is attached, by the volume itself or its slice. They are checked again with the same clients.
func (r *Reconciler) nodesOf(ctx context.Context, o client.Object) []reconcile.Request {
	volumes, err := r.Cached.Volumes(ctx)
	if err != nil {
		r.Log.Error("could not list the nodes of a volume", "volume", o.GetName(), "error", err)
		return nil
	}
	name := o.GetName()
	if slice, ok := o.(*discoveryv1.EndpointSlice); ok {
		name = slice.Labels[discoveryv1.LabelServiceName]
	}
	var requests []reconcile.Request
	for _, v := range volumes {
		if v.Name != name {
			continue
		}
		for _, n := range v.Nodes {
			r.requested.Store(n, true)
			requests = append(requests, kit.Request(n)...)
		}
	}
	return requests
}

// onlyUpdates passes neither creations nor deletions: all nodes are looked at in the beginning.
var onlyUpdates = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// valueChanged reports whether a setting has another value.
func valueChanged(before, after *longhorn.Setting) bool { return before.Value != after.Value }

// recordChanged reports whether clients are on another network or mount elsewhere, or
// restarts are paused or resumed.
func recordChanged(before, after *v1alpha1.NetworkRollout) bool {
	return before.Status.Recorded != after.Status.Recorded || before.Status.Clients.Network != after.Status.Clients.Network ||
		reads.MountingOf(before) != reads.MountingOf(after) ||
		before.Annotations[rwx.RestartsAnnotation] != after.Annotations[rwx.RestartsAnnotation]
}

// serverMoved reports whether mounts may have died, or be alive again, with the addresses that are published.
func serverMoved(before, after *discoveryv1.EndpointSlice) bool {
	moves := after.Annotations[rwx.MovesAnnotation]
	return before.Annotations[rwx.MovesAnnotation] != moves || len(reads.MovesOf(after).Left) > 0 && !slices.Equal(reads.PublishedIn(before), reads.PublishedIn(after))
}

// remountRequested reports whether there is a new request to remount.
func remountRequested(before, after *longhorn.Volume) bool {
	return before.Status.RemountRequestedAt != after.Status.RemountRequestedAt
}
