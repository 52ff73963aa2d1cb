package describe

import (
	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// List converts states, as Setting does, and the names of unknown settings.
func List(states []State, unknown []catalog.Name, names longhorn.Names) v1.SettingList {
	shown := v1.SettingList{Data: []v1.Setting{}, Unknown: append([]string{}, catalog.Texts(unknown)...)}
	for _, s := range states {
		shown.Data = append(shown.Data, Setting(s, names))
	}
	return shown
}

// Setting converts the state of a setting to the JSON of the REST API and of the
// command line.
func Setting(s State, names longhorn.Names) v1.Setting {
	shown := v1.Setting{
		Applied: s.Applied, Name: string(s.Name), Value: s.Value.Text, Source: string(s.Value.Source), Reason: s.Reason,
		Blockers: []v1.Blocker{}, Default: s.Default, Allowed: s.Allowed(), DangerZone: s.DangerZone,
		Gate: string(s.Gate), Affects: s.Affects, Namespace: names.Namespace,
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
