package taint

import "github.com/fairlead-io/fairlead/internal/fence/profiles"

// SwitchNamespace is where Fairlead's own switch is.
const SwitchNamespace = "fairlead-system"

// Switch pauses automatic tainting, at once and without a restart; it is in SwitchNamespace.
func Switch() profiles.Switch {
	return profiles.Switch{ConfigMap: "fairlead-switches", Key: "AUTOMATIC_TAINTING"}
}
