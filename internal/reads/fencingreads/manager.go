package fencingreads

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// managerLease is the lease of csi-addons' leader (v0.14.0: cmd/manager, LeaderElectionID), in any namespace.
	managerLease = "e8cd140a.openshift.io"
	// renewedWithin is the age of the lease of a leader that runs; it renews the lease every few seconds. Clocks may differ
	// by as much.
	renewedWithin = time.Minute
)

// silentManager says so if csi-addons' manager has not renewed its lease. Without a lease, or without the right to list it,
// that is unknown. A time in the future is no better than an old one.
func (r *FenceReader) silentManager(ctx context.Context, now time.Time) string {
	var leases coordinationv1.LeaseList
	if err := r.live.List(ctx, &leases, client.MatchingFields{"metadata.name": managerLease}); err != nil {
		return ""
	}
	renewed := func(l coordinationv1.Lease) time.Time {
		if l.Spec.RenewTime == nil {
			return time.Time{}
		}
		return l.Spec.RenewTime.Time
	}
	if len(leases.Items) == 0 || slices.ContainsFunc(leases.Items, func(l coordinationv1.Lease) bool { return now.Sub(renewed(l)).Abs() <= renewedWithin }) {
		return ""
	}
	last := slices.MaxFunc(leases.Items, func(a, b coordinationv1.Lease) int { return renewed(a).Compare(renewed(b)) })
	return fmt.Sprintf("csi-addons' controller manager seems to be down: it renewed its lease %s at %s, and now is %s: look at its pods: kubectl -n %s get pods",
		last.Name, renewed(last).UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), last.Namespace)
}
