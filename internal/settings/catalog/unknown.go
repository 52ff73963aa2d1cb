package catalog

import "fmt"

// UnknownMessage names the unknown settings, and says what to do.
func UnknownMessage(systemName string, unknown []Name) string {
	names := make([]string, len(unknown))
	for i, name := range unknown {
		names[i] = string(name)
	}
	return fmt.Sprintf("%s has settings that this Fairlead does not know, perhaps of the danger zone: %s. Upgrade Fairlead: until then %[1]s alone judges and applies them",
		systemName, FirstOf(names))
}
