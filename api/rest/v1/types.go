// Package v1 has the JSON types of Fairlead's REST API and of
// `fairlead settings -o json`. Fields are added, never renamed or removed.
package v1

import "time"

// Setting is one setting. Applied, Name and Value are as in the API of
// Longhorn's proposal "Support non-disruptive volume-related setting updates".
type Setting struct {
	// Applied: all components of the storage system are built with the value.
	Applied bool   `json:"applied"`
	Name    string `json:"name"`
	// Value in effect.
	Value string `json:"value"`
	// Source of the value: fairlead, the storage system's name, or default.
	Source string `json:"source"`
	// Reason says why the setting is applied, or what the setting waits for.
	Reason string `json:"reason"`
	// Since is when Applied last changed; absent if not known.
	Since *time.Time `json:"since,omitempty"`
	// Blockers are the objects that the setting waits for.
	Blockers []Blocker `json:"blockers"`
	// Default is the value if no resource sets one.
	Default string `json:"default"`
	// Allowed describes the well-formed values, in the words of a refusal.
	Allowed string `json:"allowed"`
	// DangerZone: applying the setting restarts components that serve volumes.
	DangerZone bool `json:"dangerZone"`
	// Gate says when the setting may be applied.
	Gate string `json:"gate"`
	// Affects says which components are restarted or recreated when the setting is applied.
	Affects string `json:"affects"`
	// Namespace of its objects.
	Namespace string `json:"namespace"`
	// Warnings about a change; only in the answer to the change.
	Warnings []string `json:"warnings,omitempty"`
}

// Blocker is an object that delays a setting.
type Blocker struct {
	// Kind of the blocker, such as Volume or Component.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Nodes that the blocker concerns.
	Nodes []string `json:"nodes,omitempty"`
	// Workloads that use the blocker, as namespace/name of pods.
	Workloads []string `json:"workloads,omitempty"`
	// Owners to stop, so that the workloads stop, as namespace/kind/name.
	Owners []string `json:"owners,omitempty"`
	// Message says why the blocker delays the setting, and what to do.
	Message string `json:"message,omitempty"`
}

// SettingList is the answer to a request for all settings.
type SettingList struct {
	Data []Setting `json:"data"`
	// Unknown are the names of the storage system's settings that the running Fairlead
	// does not know. A later version may have them in its danger zone.
	Unknown []string `json:"unknown"`
}

// SettingChange is the body of a request that changes a value.
type SettingChange struct {
	// Value is required, and may be "".
	Value *string `json:"value"`
}
