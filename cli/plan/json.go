package plan

import (
	"slices"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
)

// View is what `fairlead plan -o json` prints. Fields are added, never
// renamed or removed; lists are whole, and never null.
type View struct {
	Namespace string `json:"namespace"`
	// Outcome of the settings that were asked about: nothing, now, waits or invalid.
	Outcome string `json:"outcome"`
	// Settings of the danger zone, and other requested settings.
	Settings []Setting `json:"settings"`
	// Works in order: first the works that wait for nothing. Pods restart one by one, each after the previous pod is Ready.
	Works    []Work    `json:"works"`
	Blockers []Blocker `json:"blockers"`
	// Nodes whose CSI plugin pods restart for the network of RWX volumes, in the order
	// in which to drain them. Empty if the gate needs all volumes detached.
	Nodes []Node `json:"nodes"`
	// VolumeNetworks is what the per-volume networks wait for; absent if nothing. They are no setting.
	VolumeNetworks string `json:"volumeNetworks,omitempty"`
}

// Asked are the changed settings; all settings if none changes.
func (v View) Asked() []Setting {
	changed := slices.DeleteFunc(slices.Clone(v.Settings), func(s Setting) bool { return !s.Changed })
	if len(changed) > 0 {
		return changed
	}
	return v.Settings
}

// Node is a node whose CSI plugin pod restarts.
type Node struct {
	Node string `json:"node"`
	Pod  string `json:"pod"`
	// Volumes are attached to the node, and Workloads are the pods that use them.
	Volumes   []string `json:"volumes"`
	Workloads []string `json:"workloads"`
}

// Outcomes.
const (
	outcomeNothing = "nothing"
	outcomeNow     = "now"
	outcomeWaits   = "waits"
	outcomeInvalid = "invalid"
)

// Setting is one setting before and after the changes.
type Setting struct {
	Name string `json:"name"`
	// Changed: the setting is in --set or --unset.
	Changed bool  `json:"changed"`
	Now     Value `json:"now"`
	Then    Value `json:"then"`
	// Applies reports whether the setting would be applied: applied (nothing is left to do),
	// now, partly, waits, or invalid (the value is malformed).
	Applies string `json:"applies"`
	// Reason in words.
	Reason   string     `json:"reason"`
	Gate     string     `json:"gate"`
	Progress []Progress `json:"progress"`
	// Warnings of the webhook, except the effect of the change.
	Warnings []string `json:"warnings"`
	// Command makes the change; empty if the setting keeps its value.
	Command string `json:"command"`
	// appliedNow: the value in effect before the changes is rolled out.
	appliedNow bool
}

// How a setting applies.
const (
	appliesDone    = "applied"
	appliesNow     = "now"
	appliesPartly  = "partly"
	appliesWaits   = "waits"
	appliesInvalid = "invalid"
)

type Value struct {
	Value string `json:"value"`
	// Source is fairlead, the storage system's name, or default.
	Source string `json:"source"`
}

// Progress counts the components of a kind that are built with the value.
type Progress struct {
	Kind    string `json:"kind"`
	Updated int    `json:"updated"`
	Total   int    `json:"total"`
}

// Work is one action on one component.
type Work struct {
	// Action: Update a template, Restart a pod, Remove an instance manager, or
	// Move shared volumes to another network, which restarts client pods.
	Action string `json:"action"`
	// Kind and Component of the action.
	Kind      string `json:"kind"`
	Component string `json:"component"`
	Node      string `json:"node,omitempty"`
	// Settings that one action applies together.
	Settings []string `json:"settings"`
	// Wants has the traits of the component after the action.
	Wants map[string]string `json:"wants,omitempty"`
	// When: now, turn (when the pods restarted before are Ready) or later.
	When string `json:"when"`
	// WaitsFor sums up the blockers.
	WaitsFor string `json:"waitsFor,omitempty"`
}

// Values of Work.When.
const (
	whenNow   = "now"
	whenTurn  = "turn"
	whenLater = "later"
)

// Blocker is a blocker with the settings that wait for it.
type Blocker struct {
	v1.Blocker
	Settings []string `json:"settings"`
}
