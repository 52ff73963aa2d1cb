package cluster

import (
	"context"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Rollout gathers the facts on the network of shared volumes, without the requests of volumes.
func (r *Reader) Rollout(ctx context.Context, now time.Time) (rollout.Rollout, error) {
	own, system, err := r.Values(ctx)
	if err != nil {
		return rollout.Rollout{}, err
	}
	f, _, err := r.rollout(ctx, podClasses{}, catalog.Resolve(own, system, r.profile.Name), now)
	return f, err
}

// rollout reads the record before the pods, as it is the precondition of steps. It reads volumes after the pods: a volume that
// is attached meanwhile counts as attached.
func (r *Reader) rollout(ctx context.Context, classes podClasses, values catalog.Values, now time.Time) (f rollout.Rollout, pods storagePods, err error) {
	f.Now, f.MountsFromHost = now, r.profile.MountsFromHost
	f.Desired, f.Invalid = catalog.SharedVolumeNetwork(values, r.profile)
	if f.Record, err = r.Record(ctx); IgnoreNoRecord(err) != nil {
		return f, pods, err
	}
	if pods, err = r.storagePods(ctx, classes); err != nil {
		return f, pods, err
	}
	f.DaemonSet, f.Clients, f.Servers = r.daemonSetFacts(r.clientDaemonSet(pods)), pods.clients, pods.servers
	if f.Networks, err = r.networks(ctx); err != nil {
		f.Unlisted = err.Error() // other work goes on
	}
	if f.Services, err = r.Services(ctx); err != nil {
		return f, pods, err
	}
	f.Volumes, err = r.Volumes(ctx)
	return f, pods, err
}
