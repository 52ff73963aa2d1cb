package settings

import "fmt"

// Unheeded tells why a value of Fairlead's own group comes to nothing where it
// stands, and what to do; "" where it does not.
//
// The storage system builds its pods by its own settings, and so it makes anew
// what was restarted for another value. Fairlead's webhook joins in only where it
// can, and where the two do not contradict each other; of what only the storage
// system builds or reads, nobody but itself hears.
func Unheeded(values Values, system map[Name]string, name Name, systemName string) string {
	d, known := Lookup(string(name))
	if !known || values[name].Source != SourceFairlead || d.readByFairlead() {
		return ""
	}
	theirs, has := system[name]
	switch {
	case Disputed(values, system, name):
		return fmt.Sprintf("%s has %s itself, with %q, and goes by that: set it in settings.%[1]s.io", systemName, name, theirs)
	case has, d.Wants != nil && !BuiltBySystem(d.Trait):
		return ""
	case d.Until != "":
		return fmt.Sprintf("%s has no setting %s, and nobody else goes by it: it takes a version that has it (from %s, before %s), and the value in settings.%[1]s.io", systemName, name, d.Since, d.Until)
	}
	return fmt.Sprintf("%s has no setting %s, and nobody else goes by it: upgrade %[1]s to a version that has it (%[3]s or later), and set it in settings.%[1]s.io", systemName, name, d.Since)
}

// readByFairlead: Fairlead itself does what the setting says, and nothing is built with it.
func (d Definition) readByFairlead() bool {
	return d.Wants == nil && (d.Gate == SharedVolumesDetached || !d.DangerZone)
}

// BuiltBySystem tells whether only the storage system builds pods with a trait:
// Fairlead's webhook and templates have no part in it.
func BuiltBySystem(trait Trait) bool {
	switch trait {
	case LivenessTimeout, LogPathTrait, CPUMask, MemorySize, Hugepages, InterruptMode, DataEngine:
		return true
	}
	return false
}

// unheeded is what a setting waits for that nobody heeds; nil where somebody does.
func (m *maker) unheeded(name Name) []Blocker {
	why := Unheeded(m.Values, m.SystemValues, name, m.Profile.Name)
	if why == "" {
		return nil
	}
	return []Blocker{{Kind: BlockedByOther, Name: string(name), Message: why}}
}
