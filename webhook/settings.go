package webhook

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"

	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

var settingKinds = []metav1.GroupVersionKind{
	metav1.GroupVersionKind(longhorn.GroupVersion.WithKind("Setting")),
	metav1.GroupVersionKind(v1alpha1.GroupVersion.WithKind("Setting")),
}

func (l *Longhorn) settings() admission.Rule[validators.Setting] {
	read := lists.NewShared(l.settingFacts)
	return admission.Rule[validators.Setting]{
		Deletes: true,
		Kinds:   settingKinds,
		Decide: func(ctx context.Context, r *admission.Request[validators.Setting]) (admission.Decision, error) {
			if r.Namespace != l.Namespace || !validators.JudgesSetting(r.Object, r.OldObject, isOwn(r.Kind)) {
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			facts, err := read.Get(ctx)
			if err != nil {
				return admission.CannotJudge(err), nil
			}
			facts.Own, facts.MissingPolicy = isOwn(r.Kind), l.Missing
			if r.Operation == admissionv1.Delete {
				// A deletion of many at once has no name in the request.
				name := r.OldObject.Metadata.Name
				return admission.FromVerdict(validators.ValidateSettingDeletion(name, facts), r.Resource, name), nil
			}
			return admission.FromVerdict(validators.ValidateSetting(*r.Object, r.OldObject, facts), r.Resource, r.Name), nil
		},
	}
}

// isOwn reports whether a kind of settings is Fairlead's own, not the storage system's.
func isOwn(kind metav1.GroupVersionKind) bool { return kind.Group == v1alpha1.GroupVersion.Group }

// leaseTimeout leaves time for the answer.
const leaseTimeout = time.Second

// settingFacts reads live what a change of any setting is judged by.
func (l *Longhorn) settingFacts(ctx context.Context) (validators.SettingFacts, error) {
	read, err := l.Live.Facts(ctx, reads.FactsOptions{Now: time.Now(), Policy: l.Policy, AsReported: true})
	if err != nil {
		return validators.SettingFacts{}, err
	}
	facts := validators.SettingFacts{
		Facts: read, Defaults: l.Live.DefaultSettings(ctx),
		Applies: l.Duties.Settings == config.Apply, OmitEffect: l.OmitEffect,
	}
	if !l.OmitEffect {
		ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
		defer cancel()
		lease, err := l.Live.Lease(ctx, registration.Namespace)
		facts.Idle = err == nil && lease.Idle(read.Now) // the warning is not worth a failure
	}
	return facts, nil
}

func (l *Longhorn) settingStatus() admission.Rule[mutators.SettingStatus] {
	return admission.Rule[mutators.SettingStatus]{
		Kinds: []metav1.GroupVersionKind{metav1.GroupVersionKind(longhorn.GroupVersion.WithKind("Setting"))},
		Decide: func(ctx context.Context, r *admission.Request[mutators.SettingStatus]) (admission.Decision, error) {
			turnsApplied := r.Object.Status.Applied && (r.OldObject == nil || !r.OldObject.Status.Applied)
			if d, _ := catalog.Lookup(r.Name); !turnsApplied || d.Gate != catalog.SharedVolumesDetached {
				return admission.FromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: mutators.ReasonUpToDate}), nil
			}
			held, err := l.holdsApplied(ctx)
			if err != nil {
				return admission.Decision{}, err
			}
			return admission.FromMutation(mutators.MutateSettingStatus(*r.Object, held)), nil
		},
	}
}

// holdsApplied reads the facts of rollout.HoldsApplied.
func (l *Longhorn) holdsApplied(ctx context.Context) (string, error) {
	_, system, err := l.Live.Values(ctx)
	if err != nil {
		return "", err
	}
	// Longhorn itself reports a value that can't be parsed.
	value, err := catalog.SharedVolumeNetwork(catalog.Resolve(nil, system), l.Names)
	if err != nil || value.IsZero() {
		return "", nil
	}
	record, err := l.record(ctx)
	if err != nil {
		return "", err
	}
	services, err := l.Live.Services(ctx)
	if err != nil {
		return "", err
	}
	volumes, err := l.Live.Volumes(ctx)
	if err != nil {
		return "", err
	}
	return rollout.HoldsApplied(value, record, services, volumes), nil
}

// straySettings refuses Fairlead's settings outside Longhorn's namespace. The namespace is from the configuration: the
// selector of the installed webhook may have another.
func (l *Longhorn) straySettings() admission.Rule[validators.Setting] {
	return admission.Rule[validators.Setting]{
		Kinds: settingKinds[1:],
		Decide: func(_ context.Context, r *admission.Request[validators.Setting]) (admission.Decision, error) {
			if r.OldObject != nil && r.Object.HasValueOf(*r.OldObject) {
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			return admission.FromVerdict(validators.ValidateSettingNamespace(r.Object.Metadata.Name, r.Namespace, l.Namespace), r.Resource, r.Name), nil
		},
	}
}
