package fence

import "strings"

// SwitchesNamespace is where Fairlead's own switches are.
const SwitchesNamespace = "fairlead-system"

// TaintingSwitch pauses automatic tainting, at once and without a restart; it is in
// SwitchesNamespace.
func TaintingSwitch() Switch {
	return Switch{ConfigMap: "fairlead-switches", Key: "AUTOMATIC_TAINTING"}
}

// Off tells whether the data of the ConfigMap switch off. Who is in a hurry may
// write False; a ConfigMap or key that is not there switches nothing.
func (s Switch) Off(data map[string]string) bool {
	return strings.EqualFold(strings.TrimSpace(data[s.Key]), "false")
}
