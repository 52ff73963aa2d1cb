package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// SettingState is where one setting is, as far as its objects tell: what a
// person reads who may not, or need not, look at the rest of the cluster.
type SettingState struct {
	catalog.Definition
	// Value in force.
	Value   catalog.Value
	Applied bool
	// Reason says why it is applied, or what it waits for.
	Reason   string
	Blockers []v1alpha1.Blocker
	// Since is when Applied last changed; zero where nobody knows.
	Since time.Time
	// Own and System are Fairlead's object of this name and the storage system's;
	// nil where there is none.
	Own    *v1alpha1.Setting
	System *longhorn.Setting
}

// What a state says where Fairlead's controller has not reported on the value.
const (
	reasonNotSet      = "default; not set anywhere"
	reasonNotReported = "Fairlead has not reported on this value yet; if that lasts, see that its controller runs and that the settings duty is on"
	reasonInForce     = "in effect"
)

// SettingStates reads where the settings of the catalog are, in its order, and
// which others the storage system has that Fairlead does not know.
func (r *Reader) SettingStates(ctx context.Context) ([]SettingState, []catalog.Name, error) {
	var ours v1alpha1.SettingList
	if err := r.objects.List(ctx, &ours, client.InNamespace(r.profile.Namespace)); err != nil && !meta.IsNoMatchError(err) {
		return nil, nil, fmt.Errorf("listing settings.fairlead.io: %w", err)
	}
	var theirs longhorn.SettingList
	if err := r.objects.List(ctx, &theirs, client.InNamespace(r.profile.Namespace)); err != nil && !meta.IsNoMatchError(err) {
		return nil, nil, fmt.Errorf("listing settings.longhorn.io: %w", err)
	}
	states, unknown := settingStates(r.profile.Name, ours.Items, theirs.Items)
	return states, unknown, nil
}

func settingStates(profile string, ours []v1alpha1.Setting, theirs []longhorn.Setting) ([]SettingState, []catalog.Name) {
	own, system := map[catalog.Name]*v1alpha1.Setting{}, map[catalog.Name]*longhorn.Setting{}
	ownValues, systemValues := map[catalog.Name]string{}, map[catalog.Name]string{}
	for i := range ours {
		name := catalog.Name(ours[i].Name)
		own[name] = &ours[i]
		if ours[i].Value != nil {
			ownValues[name] = *ours[i].Value
		}
	}
	for i := range theirs {
		name := catalog.Name(theirs[i].Name)
		system[name], systemValues[name] = &theirs[i], theirs[i].Value
	}
	values := catalog.Resolve(ownValues, systemValues, profile)
	var states []SettingState
	for _, d := range catalog.All() {
		s := SettingState{Definition: d, Value: values[d.Name], Own: own[d.Name], System: system[d.Name]}
		s.tell()
		states = append(states, s)
	}
	return states, catalog.Unknown(systemValues)
}

// tell fills in what the objects say of the value in force.
func (s *SettingState) tell() {
	switch {
	case s.reported():
		condition := meta.FindStatusCondition(s.Own.Status.Conditions, v1alpha1.ConditionApplied)
		s.Applied, s.Reason, s.Blockers = s.Own.Status.Applied, condition.Message, s.Own.Status.Blockers
		s.Since = condition.LastTransitionTime.Time
	case s.Value.Problem != "":
		s.Reason = s.Value.Problem
	case !s.DangerZone, s.Gate == catalog.AtOnce && s.Value.Source == catalog.SourceDefault:
		s.Applied, s.Reason = true, reasonInForce
	case s.Own != nil && s.Own.Status.AppliedValue != nil && *s.Own.Status.AppliedValue != s.Value.Text:
		s.Reason = reasonNotReported // another value was rolled out, so this one is not
	case s.Value.Source == catalog.SourceDefault:
		s.Applied, s.Reason = true, reasonNotSet
	default:
		s.Reason = reasonNotReported
	}
}

// reported tells whether the status of Fairlead's own object is about the value
// in force: it is written a moment after a value changes.
func (s *SettingState) reported() bool {
	if s.Own == nil {
		return false
	}
	status := &s.Own.Status
	return status.ObservedGeneration >= s.Own.Generation &&
		status.EffectiveValue == s.Value.Text && status.Source == string(s.Value.Source) &&
		meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionApplied) != nil
}
