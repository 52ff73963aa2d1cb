// Package describe has the words and the JSON form of a setting: its value, whether the value is applied, and what it waits for.
// The REST API, the command line and the page show the same.
package describe

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// State is the state of one setting, read only from the objects of that setting:
// its reader may have no access to the rest of the cluster.
type State struct {
	catalog.Definition
	// Value in effect.
	Value   catalog.Value
	Applied bool
	// Reason says why the value is applied, or what the value waits for.
	Reason   string
	Blockers []v1alpha1.Blocker
	// Since is when Applied last changed; zero if not known.
	Since time.Time
	// Own is Fairlead's object of the setting, System the storage system's object; nil if there is none.
	Own    *v1alpha1.Setting
	System *longhorn.Setting
}

// Malformed reports whether the value must be corrected.
func (s State) Malformed() bool {
	_, err := s.Normalize(s.Value.Text)
	return err != nil || s.Value.Problem != ""
}

// Reasons if Fairlead's controller has not reported on the value.
const (
	reasonNotSet      = "default; not set anywhere"
	reasonNotReported = "Fairlead has not reported on this value yet; if that lasts, see that its controller runs and that the settings duty is on"
	reasonInEffect    = "in effect"
)

// States are the states of the catalog's settings, in the catalog's order, and the names of the storage system's settings that
// Fairlead does not know.
func States(ours []v1alpha1.Setting, theirs []longhorn.Setting) ([]State, []catalog.Name) {
	own, system := map[catalog.Name]*v1alpha1.Setting{}, map[catalog.Name]*longhorn.Setting{}
	for i := range ours {
		own[catalog.Name(ours[i].Name)] = &ours[i]
	}
	for i := range theirs {
		system[catalog.Name(theirs[i].Name)] = &theirs[i]
	}
	ownValues, systemValues := Values(ours, theirs)
	values := catalog.Resolve(ownValues, systemValues)
	var states []State
	for _, d := range catalog.All() {
		s := State{Definition: d, Value: values[d.Name], Own: own[d.Name], System: system[d.Name]}
		s.addReport()
		states = append(states, s)
	}
	return states, catalog.Unknown(systemValues)
}

// addReport adds the reports of both objects on the value in effect.
func (s *State) addReport() {
	switch {
	case s.isReported():
		condition := meta.FindStatusCondition(s.Own.Status.Conditions, v1alpha1.ConditionApplied)
		s.Applied, s.Reason, s.Blockers = s.Own.Status.Applied, condition.Message, s.Own.Status.Blockers
		s.Since = condition.LastTransitionTime.Time
	case s.Value.Problem != "":
		s.Reason = s.Value.Problem
	case !s.DangerZone, s.Gate == catalog.AtOnce && s.Value.Source == catalog.SourceDefault:
		s.Applied, s.Reason = true, reasonInEffect
	case s.Own != nil && s.Own.Status.AppliedValue != nil && *s.Own.Status.AppliedValue != s.Value.Text:
		s.Reason = reasonNotReported // another value was rolled out
	case s.Value.Source == catalog.SourceDefault:
		s.Applied, s.Reason = true, reasonNotSet
	default:
		s.Reason = reasonNotReported
	}
}

// isReported reports whether the status of Fairlead's own object refers to the value in
// effect. After a change of the value, the status is updated later.
func (s *State) isReported() bool {
	if s.Own == nil {
		return false
	}
	status := &s.Own.Status
	return status.ObservedGeneration >= s.Own.Generation &&
		status.EffectiveValue == s.Value.Text && status.Source == string(s.Value.Source) &&
		meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionApplied) != nil
}

// Values are the values of both kinds of objects, by name.
func Values(ours []v1alpha1.Setting, theirs []longhorn.Setting) (own, system map[catalog.Name]string) {
	own, system = map[catalog.Name]string{}, map[catalog.Name]string{}
	for i := range ours {
		if value := ours[i].Value; value != nil {
			own[catalog.Name(ours[i].Name)] = *value
		}
	}
	for i := range theirs {
		system[catalog.Name(theirs[i].Name)] = theirs[i].Value
	}
	return own, system
}
