package webhook

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

func (p Profile) settingStatus() admission.Rule[mutators.SettingStatus] {
	return admission.Rule[mutators.SettingStatus]{
		Kinds: []metav1.GroupVersionKind{metav1.GroupVersionKind(longhorn.GroupVersion.WithKind("Setting"))},
		Decide: func(ctx context.Context, r *admission.Request[mutators.SettingStatus]) (admission.Decision, error) {
			turnsApplied := r.Object.Status.Applied && (r.OldObject == nil || !r.OldObject.Status.Applied)
			if !turnsApplied || !choosesSharedNetwork(r.Name) {
				return admission.FromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: mutators.ReasonUpToDate}), nil
			}
			held, err := p.holdsApplied(ctx)
			if err != nil {
				return admission.Decision{}, err
			}
			return admission.FromMutation(mutators.MutateSettingStatus(*r.Object, held)), nil
		},
	}
}

func choosesSharedNetwork(name string) bool {
	return slices.ContainsFunc(catalog.ChooseSharedNetwork(), func(d catalog.Definition) bool { return string(d.Name) == name })
}

// holdsApplied reads the facts of rollout.HoldsApplied.
func (p Profile) holdsApplied(ctx context.Context) (string, error) {
	_, system, err := p.Live.Values(ctx)
	if err != nil {
		return "", err
	}
	// Longhorn itself reports a value that can't be parsed.
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
