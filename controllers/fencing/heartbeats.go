package fencing

import (
	"context"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// hear adds since when the kubelet of a node has renewed its Lease, if a boot waits for that. The Lease of no other node is read.
func (r *Reconciler) hear(ctx context.Context, node string, views []*fencingreads.FenceView, now time.Time) {
	i := slices.IndexFunc(views, func(v *fencingreads.FenceView) bool { return v.Facts.AwaitsHeartbeats() })
	if i < 0 {
		r.heartbeats.Delete(node)
		return
	}
	lease := coordinationv1.Lease{}
	err := r.API.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: node}, &lease)
	if client.IgnoreNotFound(err) != nil {
		r.Log.Error("reading the Lease of a node, whose volumes are held meanwhile", "node", node, "err", err)
		return
	}
	var renewed time.Time
	if lease.Spec.RenewTime != nil {
		renewed = lease.Spec.RenewTime.Time
	}
	known, _ := r.heartbeats.Load(node)
	seen, _ := known.(fence.Heartbeats)
	seen = seen.See(renewed, now)
	r.heartbeats.Store(node, seen)
	views[i].Facts.HeardSince = seen.Since
}
