package cluster

import (
	"context"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// FactsOptions choose how facts are gathered.
type FactsOptions struct {
	Now time.Time
	// Policy of roll-outs, from the configuration.
	Policy rollout.Policy
	// VolumeNetworks: volumes may have per-volume networks, and their requests are read.
	VolumeNetworks bool
	// AsReported, for what is only announced: engines, replicas and the requests of volumes are not read. There may be very many.
	// Instance managers run what they report, and per-volume networks stay as the record has them. Whoever restarts an instance
	// manager reads its engines and replicas right before.
	AsReported bool
}

// Facts gathers all facts of a plan, each list once. A cluster without a network record counts as
// on the cluster network.
func (r *Reader) Facts(ctx context.Context, o FactsOptions) (plan.Facts, error) {
	f := plan.Facts{Profile: r.profile, Now: o.Now}
	if err := r.addSettings(ctx, &f); err != nil {
		return f, err
	}
	classes, byDefault, err := r.priorityClasses(ctx)
	if err != nil {
		return f, err
	}
	f.Classes = classes
	if f.Nodes, err = r.nodes(ctx); err != nil {
		return f, err
	}
	var pods storagePods
	if f.Rollout, pods, err = r.rollout(ctx, classesFor(byDefault, f.Values), f.Values, o.Now); err != nil {
		return f, err
	}
	f.Rollout.Policy = o.Policy
	markLost(f.Rollout.Clients, f.Nodes)
	switch {
	case o.AsReported:
		for _, a := range f.Rollout.Record.VolumeServers {
			f.Rollout.ClassNetworks = append(f.Rollout.ClassNetworks, a.Network)
		}
	case o.VolumeNetworks:
		if err := r.addRequests(ctx, &f.Rollout); err != nil {
			return f, err
		}
	}
	// Last: engines and replicas are written before their instance managers report them.
	f.Components, err = r.components(ctx, pods, f.Rollout.Volumes, f.Nodes, o.AsReported)
	return f, err
}

// addSettings reads the values in effect, and the last reports on them.
func (r *Reader) addSettings(ctx context.Context, f *plan.Facts) error {
	ours, theirs, err := r.settings(ctx)
	if err != nil {
		return err
	}
	f.Reported = map[catalog.Name]plan.Reported{}
	for i := range ours {
		f.Reported[catalog.Name(ours[i].Name)] = Reported(&ours[i])
	}
	f.OwnValues, f.SystemValues = valuesOf(ours, theirs)
	f.Values = catalog.Resolve(f.OwnValues, f.SystemValues, r.profile.Name)
	return nil
}

// Reported reads the status of a Setting.
func Reported(s *v1alpha1.Setting) plan.Reported {
	return plan.Reported{Rolled: s.Status.AppliedValue, Applied: s.Status.Applied, Underway: s.Status.Underway}
}
