package settings

import "slices"

// Name of a setting, as Longhorn names it (longhorn-manager types/setting.go).
type Name string

// Definition is what is known of one setting.
type Definition struct {
	Name Name
	// Default value where no resource sets one.
	Default string
	// Parse refuses a value that is not well formed. Its error is a phrase that
	// follows the value: `must be "true" or "false"`.
	Parse func(value string) error
	// Affects says which pods are restarted or built anew when it is applied.
	Affects string
	// Since is the first version of the storage system that knows the setting.
	Since string
	// NamesNetwork: the value is a network, or "" for the cluster network.
	NamesNetwork bool
	// AtOnce: nothing restarts when it changes, so it is in force once accepted.
	// All others are the danger zone.
	AtOnce bool
}

// All returns the definitions of the settings that Fairlead judges and
// applies, a family a file, in the order in which they are shown.
func All() []Definition {
	return slices.Concat(networkFamily(), workloadFamily())
}

// DangerZone returns the definitions of the settings whose change restarts something.
func DangerZone() []Definition {
	return slices.DeleteFunc(All(), func(d Definition) bool { return d.AtOnce })
}

// Lookup finds a definition by name.
func Lookup(name string) (Definition, bool) {
	for _, d := range All() {
		if string(d.Name) == name {
			return d, true
		}
	}
	return Definition{}, false
}

// AtOnce tells whether the setting of that name is in force once accepted.
func AtOnce(name string) bool {
	d, known := Lookup(name)
	return known && d.AtOnce
}
