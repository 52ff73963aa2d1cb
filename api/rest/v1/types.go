// Package v1 has the JSON that Fairlead's REST API answers with, and that
// `fairlead settings -o json` prints. Fields are added, never renamed or taken away.
package v1

import "time"

// Setting is one named value of a profile. Applied, Name and Value are as in the
// API of Longhorn's proposal "Support non-disruptive volume-related setting updates".
type Setting struct {
	// Applied: what the storage system runs is built with the value.
	Applied bool   `json:"applied"`
	Name    string `json:"name"`
	// Value in force.
	Value string `json:"value"`
	// Source of the value: fairlead, the storage system's name, or default.
	Source string `json:"source"`
	// Reason says why it is applied, or what it waits for.
	Reason string `json:"reason"`
	// Since is when Applied last changed; absent where nobody knows.
	Since *time.Time `json:"since,omitempty"`
	// Blockers are the concrete things that it waits for.
	Blockers []Blocker `json:"blockers"`
	// Default where no resource sets a value.
	Default string `json:"default"`
	// Allowed says which values are well formed, as a refusal does.
	Allowed string `json:"allowed"`
	// DangerZone: applying it restarts what serves volumes.
	DangerZone bool `json:"dangerZone"`
	// Gate says when it may be applied.
	Gate string `json:"gate"`
	// Affects says what is restarted or built anew when it is applied.
	Affects string `json:"affects"`
	// Profile that it is of, and the namespace of its objects.
	Profile   string `json:"profile"`
	Namespace string `json:"namespace"`
	// Warnings that came back when it was changed; only in the answer to a change.
	Warnings []string `json:"warnings,omitempty"`
}

// Blocker is one concrete thing that keeps a setting from being applied.
type Blocker struct {
	// Kind of the thing, such as Volume or Component.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Nodes it concerns.
	Nodes []string `json:"nodes,omitempty"`
	// Workloads that use it, as namespace/name of pods.
	Workloads []string `json:"workloads,omitempty"`
	// Message says why it blocks and what to do.
	Message string `json:"message,omitempty"`
}

// SettingList is the answer to a request for all settings.
type SettingList struct {
	Data []Setting `json:"data"`
	// Unknown are the names of settings that the storage system has and this Fairlead
	// does not know: a later version may have them in its danger zone.
	Unknown []string `json:"unknown"`
}

// SettingChange is the body of a request that changes a value.
type SettingChange struct {
	// Value is required, and may be "".
	Value *string `json:"value"`
}
