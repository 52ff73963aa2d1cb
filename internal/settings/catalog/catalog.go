// Package catalog has the settings: which values each takes, what it asks of components, in
// which resource it is set, and which volumes must be detached before it is applied.
package catalog

import "slices"

// Name of a setting in Longhorn (longhorn-manager types/setting.go).
type Name string

// SystemVersion is the setting in which Longhorn writes its version.
const SystemVersion Name = "current-longhorn-version"

// Definition of a setting.
type Definition struct {
	Name Name
	// Default value if no resource sets the setting.
	Default string
	// OtherDefaults of some versions of the storage system, which creates its missing settings at its start.
	OtherDefaults []string
	// Normalize returns the normal form, by which values are compared. Stored values keep their spelling.
	// The error of a malformed value is Form, and a detail if Form is not clear enough.
	Normalize func(value string) (string, error)
	// Form that values must have. It follows the value in messages: `must be "true" or "false"`.
	Form string
	// Affects names the pods that are restarted or recreated when the setting is applied.
	Affects string
	// Since is the first version of the storage system with the setting, Until the first later version without;
	// empty if all later versions have the setting.
	Since, Until string
	// ReplacedBy is the setting of later versions of the storage system that replaces this setting.
	ReplacedBy Name
	// ByFairlead: Fairlead itself uses the setting. So settings.fairlead.io can have the setting
	// if the storage system does not.
	ByFairlead bool
	// DangerZone: the setting is in Longhorn's danger zone, and Fairlead judges it in both groups.
	// Fairlead judges other settings only in its own group.
	DangerZone bool
	// ReadOnly: only the storage system writes it.
	ReadOnly bool
	// NamesNetwork: the value is a network, or "" for the cluster network.
	NamesNetwork bool
	// Gate says when the setting may be applied. An open gate authorises no other setting.
	Gate Gate
	// Trait of components that the setting decides.
	Trait Trait
	// Wants returns the trait that the value asks of a component; ok is false if the setting is not about
	// the component. Wants is nil if no component is built with the setting.
	Wants func(value string, c Component, nodes Nodes) (want string, ok bool)
}

// Gate says when a setting may be applied.
type Gate string

// Gates. Source: proposal "Support non-disruptive volume-related setting
// updates", and longhorn-manager controller/setting_controller.go.
const (
	// AtOnce: nothing that serves a volume restarts.
	AtOnce Gate = "at once"
	// AllVolumesDetached: no volume is attached. If only an instance-manager pod differs: the pod runs no engine or replica.
	AllVolumesDetached Gate = "all volumes detached"
	// SharedVolumesDetached: no non-migratable RWX volume is attached; see package rollout.
	SharedVolumesDetached Gate = "no RWX volume attached"
	// InstanceManagerIdle: each instance-manager pod by itself, while the pod runs no engine or replica.
	InstanceManagerIdle Gate = "instance manager idle"
)

// All returns the definitions of all settings, in the order of display. Each family has a file.
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

// Names of all settings, in the order of display.
func Names() []string {
	var names []Name
	for _, d := range all {
		names = append(names, d.Name)
	}
	return Texts(names)
}

// Texts are names for messages and JSON.
func Texts(names []Name) []string {
	var texts []string
	for _, n := range names {
		texts = append(texts, string(n))
	}
	return texts
}

// DangerZone returns the definitions of the danger zone.
func DangerZone() []Definition {
	return slices.DeleteFunc(slices.Clone(all), func(d Definition) bool { return !d.DangerZone })
}

// Lookup returns a definition by name.
func Lookup(name string) (Definition, bool) {
	for i := range all {
		if string(all[i].Name) == name {
			return all[i], true
		}
	}
	return Definition{}, false
}

// Parse refuses a malformed value.
func (d Definition) Parse(value string) error {
	_, err := d.Normalize(value)
	return err
}
