package fencing

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
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
			r.Log.Error("volumes of nodes that are back stay held", "error", err)
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
	leases, err := fencingreads.NodeLeases(ctx, r.API)
	if err != nil {
		return err
	}
	now := r.Clock.Now()
	r.heartbeats.Range(func(node, known any) bool {
		name, _ := node.(string)
		heard, _ := known.(fence.Heartbeats)
		lease := leases[name]
		lasts := time.Duration(ptr.Deref(lease.LeaseDurationSeconds, 0)) * time.Second
		r.heartbeats.CompareAndSwap(node, known, heard.See(ptr.Deref(lease.RenewTime, metav1.MicroTime{}).Time, lasts, now)) // it may be deleted meanwhile
		return true
	})
	return nil
}
