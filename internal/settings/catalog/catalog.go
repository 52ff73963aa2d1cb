package catalog

import "slices"

// Name of a setting, as Longhorn names it (longhorn-manager types/setting.go).
type Name string

// SystemVersion is the setting in which Longhorn writes its version.
const SystemVersion Name = "current-longhorn-version"

// Definition is what is known of one setting.
type Definition struct {
	Name Name
	// Default value where no resource sets one.
	Default string
	// OtherDefaults are those of some versions of the storage system, which creates
	// its missing settings with them as it starts.
	OtherDefaults []string
	// Normalize returns the value in one spelling, by which values are compared;
	// stored they are as they were written. It refuses what is not well formed by a
	// phrase that follows the value: `must be "true" or "false"`. f(f(x)) = f(x).
	Normalize func(value string) (string, error)
	// Affects says which pods are restarted or built anew when it is applied.
	Affects string
	// Since is the first version of the storage system that knows the setting, Until
	// the first that does not any more; empty where all later ones do.
	Since, Until string
	// ReplacedBy is what a later version of the storage system has in its place.
	ReplacedBy Name
	// ByFairlead: Fairlead itself reads the setting, or builds templates by it, and so
	// it can be set in Fairlead's own group where the storage system does not have it.
	ByFairlead bool
	// DangerZone: Longhorn has it in its danger zone, and Fairlead judges it in
	// both groups. The others are read here, and judged in Fairlead's own only.
	DangerZone bool
	// ReadOnly: only the storage system writes it.
	ReadOnly bool
	// NamesNetwork: the value is a network, or "" for the cluster network.
	NamesNetwork bool
	// Gate says when it may be applied. Its gate opens no other setting's way.
	Gate Gate
	// Trait is what it decides of the components it is applied to, see Wants.
	Trait Trait
	// Wants is the trait that the value asks of a component; ok is false where the
	// value is not about it. Nil where nothing is built with the setting.
	Wants func(value string, c Component, nodes Nodes) (want string, ok bool)
}

// Gate says when a setting may be applied.
type Gate string

// Gates. Source: proposal "Support non-disruptive volume-related setting
// updates", and longhorn-manager controller/setting_controller.go.
const (
	// AtOnce: nothing that serves a volume restarts.
	AtOnce Gate = "at once"
	// AllVolumesDetached: no volume is attached. An instance-manager pod alone: as
	// soon as it runs no engine or replica.
	AllVolumesDetached Gate = "all volumes detached"
	// SharedVolumesDetached: no non-migratable RWX volume is attached; see Rollout.
	SharedVolumesDetached Gate = "no RWX volume attached"
	// InstanceManagerIdle: for each instance-manager pod, when it runs no engine or replica.
	InstanceManagerIdle Gate = "instance manager idle"
)

// All returns the definitions of the settings that Fairlead judges and
// applies, a family a file, in the order in which they are shown.
func All() []Definition { return all }

var all = slices.Concat(
	networkFamily(),
	schedulingFamily(),
	cpuFamily(),
	engineFamily(),
	spdkFamily(),
	spdkTuningFamily(),
	probeFamily(),
	resourceFamily(),
	logPathFamily(),
	limitFamily(),
	purgeFamily(),
	workloadFamily(),
)

// DangerZone returns the definitions of the danger zone.
func DangerZone() []Definition {
	return slices.DeleteFunc(slices.Clone(all), func(d Definition) bool { return !d.DangerZone })
}

// Lookup finds a definition by name.
func Lookup(name string) (Definition, bool) {
	for i := range all {
		if string(all[i].Name) == name {
			return all[i], true
		}
	}
	return Definition{}, false
}

// Parse refuses a value that is not well formed.
func (d Definition) Parse(value string) error {
	_, err := d.Normalize(value)
	return err
}
