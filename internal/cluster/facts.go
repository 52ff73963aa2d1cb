package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// FactsOptions say how facts are gathered.
type FactsOptions struct {
	Now time.Time
	// Policy, as in settings.Rollout.
	Policy rollout.Policy
	// VolumeNetworks: volumes may have networks of their own.
	VolumeNetworks bool
}

// Facts gathers all that a plan follows from. A cluster whose network is not
// recorded yet is taken to be on the cluster network.
func (r *Reader) Facts(ctx context.Context, o FactsOptions) (plan.Facts, error) {
	f := plan.Facts{Profile: r.profile, Now: o.Now}
	if err := r.addSettings(ctx, &f); err != nil {
		return f, err
	}
	record, err := r.Record(ctx)
	if err != nil && !errors.Is(err, ErrNotRecorded) {
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
	if r.announces { // what volumes ask for is not read: their networks stay as they are
		for _, a := range record.VolumeServers {
			f.Rollout.ClassNetworks = append(f.Rollout.ClassNetworks, a.Network)
		}
	}
	f.Volumes = f.Rollout.Volumes
	if err != nil { // what is not about the network of shared volumes goes on
		if f.Volumes, err = r.Volumes(ctx); err != nil {
			return f, err
		}
	}
	if f.Components, err = r.componentsWith(ctx, f.Volumes); err != nil {
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

// AddNetworks adds which networks there are. The reader is a live one: the kind may not be
// installed. controllers/rollout watches networks, for wake-ups only, once the kind exists.
func (r *Reader) AddNetworks(ctx context.Context, f *plan.Facts) error {
	networks, err := r.Networks(ctx)
	if err != nil && !lists.NotInstalled(err) {
		return err
	}
	f.Existing.Networks = rollout.NetworksThere(networks) // without Multus there is none
	return nil
}

// addSettings reads the values in force, and what was last reported of them.
func (r *Reader) addSettings(ctx context.Context, f *plan.Facts) error {
	own, system := map[catalog.Name]string{}, map[catalog.Name]string{}
	f.Told = map[catalog.Name]plan.Told{}
	var ours v1alpha1.SettingList
	if err := r.objects.List(ctx, &ours, client.InNamespace(r.profile.Namespace), client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing settings.fairlead.io: %w", err)
	}
	var theirs longhorn.SettingList
	if err := r.objects.List(ctx, &theirs, client.InNamespace(r.profile.Namespace), client.UnsafeDisableDeepCopy); err != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("listing settings.longhorn.io: %w", err)
	}
	for i := range theirs.Items {
		system[catalog.Name(theirs.Items[i].Name)] = theirs.Items[i].Value
	}
	for i := range ours.Items {
		s := &ours.Items[i]
		name := catalog.Name(s.Name)
		f.Told[name] = Told(s)
		if s.Value != nil {
			own[name] = *s.Value
		}
	}
	f.OwnValues, f.SystemValues = own, system
	f.Values = catalog.Resolve(own, system, r.profile.Name)
	return nil
}

// Told is what is reported in a setting of Fairlead's own.
func Told(s *v1alpha1.Setting) plan.Told {
	return plan.Told{Rolled: s.Status.AppliedValue, Applied: s.Status.Applied, Underway: s.Status.Underway}
}
