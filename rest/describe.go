package rest

import (
	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/storage"
)

// Describe puts the state of a setting in the form that people are shown, by
// the API and on the command line.
func Describe(s cluster.SettingState, p storage.Profile) v1.Setting {
	shown := v1.Setting{
		Applied: s.Applied, Name: string(s.Name), Value: s.Value.Text, Source: string(s.Value.Source), Reason: s.Reason,
		Blockers: []v1.Blocker{}, Default: s.Default, Allowed: s.Allowed(), DangerZone: s.DangerZone,
		Gate: string(s.Gate), Affects: s.Affects, Profile: p.Name, Namespace: p.Namespace,
	}
	if !s.Since.IsZero() {
		since := s.Since.UTC()
		shown.Since = &since
	}
	for _, b := range s.Blockers {
		shown.Blockers = append(shown.Blockers, v1.Blocker(b))
	}
	return shown
}
