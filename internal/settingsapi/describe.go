package settingsapi

import (
	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// DescribeAll converts states, as Describe does, and the names of unknown settings.
func DescribeAll(states []cluster.SettingState, unknown []catalog.Name, p storage.Profile) v1.SettingList {
	shown := v1.SettingList{Data: []v1.Setting{}, Unknown: []string{}}
	for _, s := range states {
		shown.Data = append(shown.Data, Describe(s, p))
	}
	for _, name := range unknown {
		shown.Unknown = append(shown.Unknown, string(name))
	}
	return shown
}

// Describe converts the state of a setting to the JSON of the REST API and of the
// command line.
func Describe(s cluster.SettingState, p storage.Profile) v1.Setting {
	shown := v1.Setting{
		Applied: s.Applied, Name: string(s.Name), Value: s.Value.Text, Source: string(s.Value.Source), Reason: s.Reason,
		Blockers: []v1.Blocker{}, Default: s.Default, Allowed: s.Form, DangerZone: s.DangerZone,
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
