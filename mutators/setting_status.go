package mutators

import "gomodules.xyz/jsonpatch/v2"

// SettingStatus is the view of the status of a setting of the storage system.
type SettingStatus struct {
	Status struct {
		Applied bool `json:"applied"`
	} `json:"status"`
}

// MutateSettingStatus keeps `applied` false while Services of volumes do not fit the setting's value. Longhorn sets
// `applied` when its own gate opens, before clients have moved.
//
// Objects: settings.longhorn.io/status of the settings that choose the network for RWX volumes.
// Condition: `applied` turns true, and Fairlead applies settings.
// Source: longhorn-manager v1.7.2 controller/setting_controller.go, syncSetting.
func MutateSettingStatus(s SettingStatus, held string) Result {
	if !s.Status.Applied || held == "" {
		return unchanged(ReasonUpToDate, "")
	}
	return mutated(ReasonNotAppliedYet, held, jsonpatch.NewOperation("replace", "/status/applied", false))
}
