package fencing

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// hear adds since when the kubelet of a node has renewed its Lease, if a boot waits for that.
func (r *Reconciler) hear(node string, views []*fencingreads.FenceView) {
	for _, v := range views {
		if v.Facts.AwaitsHeartbeats() {
			known, _ := r.heartbeats.LoadOrStore(node, fence.Heartbeats{})
			heard, _ := known.(fence.Heartbeats)
			v.Facts.HeardSince = heard.Since
			return
		}
	}
	r.heartbeats.Delete(node)
}

// readLeases while this controller leads. A look at a node may come late when a thousand nodes return at once; a list of Leases does not.
func (r *Reconciler) readLeases(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := r.readLeasesOnce(ctx); err != nil {
			r.Log.Error("listing the Leases of nodes, of which some have volumes that are held meanwhile", "err", err)
		}
	}, fence.ReadLeasesEvery)
	return nil
}

func (r *Reconciler) readLeasesOnce(ctx context.Context) error {
	awaited := false
	r.heartbeats.Range(func(any, any) bool { awaited = true; return false })
	if !awaited {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	leases := map[string]coordinationv1.LeaseSpec{}
	err := lists.ForEach(ctx, lists.NewLive(r.API), &coordinationv1.LeaseList{}, func(l *coordinationv1.Lease) { leases[l.Name] = l.Spec }, client.InNamespace(corev1.NamespaceNodeLease))
	if err != nil {
		return err
	}
	now := r.Clock.Now()
	r.heartbeats.Range(func(node, known any) bool {
		var renewed time.Time
		var lasts time.Duration
		name, _ := node.(string)
		lease := leases[name]
		if lease.RenewTime != nil {
			renewed = lease.RenewTime.Time
		}
		if lease.LeaseDurationSeconds != nil {
			lasts = time.Duration(*lease.LeaseDurationSeconds) * time.Second
		}
		heard, _ := known.(fence.Heartbeats)
		r.heartbeats.CompareAndSwap(node, known, heard.See(renewed, lasts, now)) // it may be deleted meanwhile
		return true
	})
	return nil
}
