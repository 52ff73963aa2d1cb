package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/mutators"
)

func (p Profile) settingStatus() rule[mutators.SettingStatus] {
	return rule[mutators.SettingStatus]{
		name:  p.Name + "/" + entrySettingStatus,
		kinds: []metav1.GroupVersionKind{{Group: "longhorn.io", Version: "v1beta2", Kind: "Setting"}},
		decide: func(ctx context.Context, r *Request[mutators.SettingStatus]) (Decision, error) {
			held, err := p.holdsApplied(ctx)
			if err != nil {
				return Decision{}, err
			}
			return fromMutation(mutators.MutateSettingStatus(*r.Object, held)), nil
		},
	}
}

// holdsApplied gathers the facts of settings.HoldsApplied.
func (p Profile) holdsApplied(ctx context.Context) (string, error) {
	_, system, err := p.Live.Values(ctx)
	if err != nil {
		return "", err
	}
	// A value that can't be read is Longhorn's to complain about.
	value, err := catalog.SharedVolumeNetwork(catalog.Resolve(nil, system, p.Name), p.Profile)
	if err != nil || value.IsZero() {
		return "", nil
	}
	record, err := p.liveRecord(ctx)
	if err != nil {
		return "", err
	}
	services, err := p.Live.Services(ctx)
	if err != nil {
		return "", err
	}
	volumes, err := p.Live.Volumes(ctx)
	if err != nil {
		return "", err
	}
	return rollout.HoldsApplied(value, record, services, volumes), nil
}
