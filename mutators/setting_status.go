package mutators

import "gomodules.xyz/jsonpatch/v2"

// SettingStatus is the view of the status of a setting of the storage system.
type SettingStatus struct {
	Status struct {
		Applied bool `json:"applied"`
	} `json:"status"`
}

// MutateSettingStatus keeps `applied` false while Services of volumes are not of
// the kind that the setting's value asks for: see settings.HoldsApplied. Longhorn
// writes it when its own gate is open, whether or not clients have moved.
//
// Objects: settings.longhorn.io/status of the settings that choose the network for RWX volumes.
// Condition: `applied` turns true, and Fairlead applies settings.
// Source: longhorn-manager v1.7.2 controller/setting_controller.go, syncSetting.
func MutateSettingStatus(s SettingStatus, held string) Result {
	if !s.Status.Applied || held == "" {
		return unchanged(ReasonAsItShouldBe, "")
	}
	return mutated(ReasonNotAppliedYet, held, jsonpatch.NewOperation("replace", "/status/applied", false))
}
