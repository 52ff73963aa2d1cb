package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// FactsOptions choose how facts are gathered.
type FactsOptions struct {
	Now time.Time
	// Policy, as in settings.Rollout.
	Policy rollout.Policy
	// VolumeNetworks: volumes may have per-volume networks, and their requests are read.
	VolumeNetworks bool
	// AsReported, for what is only announced: engines, replicas and the requests of volumes are not read. There may be very many.
	// Instance managers run what they report, and per-volume networks stay as the record has them. Whoever restarts an instance
	// manager reads its engines and replicas right before.
	AsReported bool
}

// Facts gathers all facts of a plan. A cluster without a network record counts as
// on the cluster network.
func (r *Reader) Facts(ctx context.Context, o FactsOptions) (plan.Facts, error) {
	f := plan.Facts{Profile: r.profile, Now: o.Now}
	if err := r.addSettings(ctx, &f); err != nil {
		return f, err
	}
	record, err := r.Record(ctx)
	if IgnoreNoRecord(err) != nil {
		return f, err
	}
	f.Rollout, err = r.Rollout(ctx, f.Values, record, o.Now)
	if err != nil && !errors.Is(err, catalog.ErrInvalidValue) {
		return f, err
	}
	f.Rollout.Policy = o.Policy
	if err == nil && o.VolumeNetworks {
		if err := r.AddRequests(ctx, &f.Rollout); err != nil {
			return f, err
		}
	}
	if o.AsReported {
		for _, a := range record.VolumeServers {
			f.Rollout.ClassNetworks = append(f.Rollout.ClassNetworks, a.Network)
		}
	}
	f.Volumes = f.Rollout.Volumes
	if err != nil { // other settings than the network of shared volumes are still planned
		if f.Volumes, err = r.Volumes(ctx); err != nil {
			return f, err
		}
	}
	if f.Components, err = r.componentsWith(ctx, f.Volumes, o.AsReported); err != nil {
		return f, err
	}
	classes, _, err := r.PriorityClasses(ctx)
	if err != nil {
		return f, err
	}
	f.Existing.Classes = make(map[string]bool, len(classes))
	for _, name := range classes {
		f.Existing.Classes[name] = true
	}
	f.Nodes, err = r.Nodes(ctx)
	return f, err
}

// AddNetworks adds the existing networks. The reader must be live: the kind may not be
// installed. controllers/rollout watches networks, for wake-ups only, once the kind exists.
func (r *Reader) AddNetworks(ctx context.Context, f *plan.Facts) error {
	networks, err := r.Networks(ctx)
	if err != nil && !lists.NotInstalled(err) {
		return err
	}
	f.Existing.Networks = rollout.NetworkSet(networks) // without Multus there is none
	return nil
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
