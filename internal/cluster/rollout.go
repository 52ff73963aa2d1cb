package cluster

import (
	"context"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Rollout gathers all facts that the next step of the network's roll-out
// follows from. values are those in force. A value that is not well formed
// comes back as an error of settings.SharedVolumeNetwork.
func (r *Reader) Rollout(ctx context.Context, values catalog.Values, record rollout.Record, now time.Time) (rollout.Rollout, error) {
	facts := rollout.Rollout{Record: record, Now: now, MountsFromHost: r.profile.MountsFromHost}
	var err error
	if facts.Desired, err = catalog.SharedVolumeNetwork(values, r.profile); err != nil {
		return facts, err
	}
	if facts.DaemonSet, err = r.DaemonSet(ctx); err != nil {
		return facts, err
	}
	if facts.Clients, err = r.Clients(ctx); err != nil {
		return facts, err
	}
	if facts.Volumes, err = r.Volumes(ctx); err != nil {
		return facts, err
	}
	if facts.Services, err = r.Services(ctx); err != nil {
		return facts, err
	}
	if r.announces { // the Services say which networks are in use; server pods are as many again
		return facts, nil
	}
	facts.Servers, err = r.Servers(ctx)
	return facts, err
}
