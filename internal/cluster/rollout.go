package cluster

import (
	"context"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Rollout gathers the facts for the next step of the network's roll-out. values are
// the values in effect. A malformed value is returned as an error of
// settings.SharedVolumeNetwork.
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
	if r.announces { // the Services show the networks in use, so the server pods need not be read
		return facts, nil
	}
	facts.Servers, err = r.Servers(ctx)
	return facts, err
}
