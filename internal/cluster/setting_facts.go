package cluster

import (
	"context"

	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/validators"
)

// SettingFacts adds to the facts of a plan what the rules of settings read besides. Admission and `fairlead plan` judge by it.
func (r *Reader) SettingFacts(ctx context.Context, f plan.Facts) validators.SettingFacts {
	facts := validators.SettingFacts{Facts: f, Defaults: r.DefaultSettings(ctx)}
	// A cluster without Multus has no such kind. Values are checked all the same.
	networks, err := r.Networks(ctx)
	if err == nil {
		facts.Networks, facts.NetworksKnown, facts.Existing.Networks = networks, true, rollout.NetworkSet(networks)
	}
	return facts
}
