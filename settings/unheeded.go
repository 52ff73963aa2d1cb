package settings

import "fmt"

// Unheeded tells why a value of Fairlead's own group comes to nothing where it
// stands, and what to do; "" where it does not.
//
// The storage system builds its pods by its own settings, and so it makes anew
// what was restarted for another value. Fairlead's webhook joins in only where it
// can, and where the two do not contradict each other, be it by another name; of
// what only the storage system builds or reads, nobody but itself hears.
func Unheeded(values Values, system map[Name]string, name Name, systemName string) string {
	d, known := Lookup(string(name))
	if !known || values[name].Source != SourceFairlead || d.readByFairlead() {
		return ""
	}
	theirs, has := system[name]
	switch {
	case Disputed(values, system, name):
		return fmt.Sprintf("%s has %s itself, with %q, and goes by that: set it in settings.%[1]s.io", systemName, name, theirs)
	case has, d.Wants != nil && !d.builtWithout(system):
		return ""
	case d.Wants != nil && d.instead(system) != "":
		return fmt.Sprintf("%s has no setting %s, and goes by %s: set that in settings.%[1]s.io", systemName, name, d.instead(system))
	case d.Until != "":
		return fmt.Sprintf("%s has no setting %s, and nobody else goes by it: it takes a version that has it (from %s, before %s), and the value in settings.%[1]s.io", systemName, name, d.Since, d.Until)
	}
	return fmt.Sprintf("%s has no setting %s, and nobody else goes by it: upgrade %[1]s to a version that has it (%[3]s or later), and set it in settings.%[1]s.io", systemName, name, d.Since)
}

// readByFairlead: Fairlead itself does what the setting says, and nothing is built with it.
func (d Definition) readByFairlead() bool {
	return d.Wants == nil && (d.Gate == SharedVolumesDetached || !d.DangerZone)
}

// builtWithout tells whether the storage system lacks the setting, and yet builds
// in its own way what it decides: since only the storage system builds that, or
// since it has another setting in its place, which it judges its pods by.
func (d Definition) builtWithout(system map[Name]string) bool {
	if _, has := system[d.Name]; has || d.Wants == nil {
		return false
	}
	return BuiltBySystem(d.Trait) || d.instead(system) != ""
}

// instead is the setting of the same trait that the storage system has in place of
// one of its former versions; "" where it has none.
func (d Definition) instead(system map[Name]string) Name {
	for i := range all {
		if _, has := system[all[i].Name]; has && d.Until != "" && all[i].Until == "" && all[i].Trait == d.Trait {
			return all[i].Name
		}
	}
	return ""
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
