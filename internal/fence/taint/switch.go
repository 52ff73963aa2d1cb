package taint

import "strings"

// The switch that pauses automatic tainting, at once and without a restart, is a key of a ConfigMap.
const (
	SwitchNamespace = "fairlead-system"
	SwitchConfigMap = "fairlead-switches"
	SwitchKey       = "AUTOMATIC_TAINTING"
)

// IsSwitchedOff reports whether the data of the ConfigMap say "false", in any case of letters. A missing ConfigMap or
// key switches nothing.
func IsSwitchedOff(data map[string]string) bool {
	return strings.EqualFold(strings.TrimSpace(data[SwitchKey]), "false")
}
