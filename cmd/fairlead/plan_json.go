package main

import (
	"slices"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
)

// planView is what `fairlead plan -o json` prints. Fields are added, never
// renamed or taken away; lists are whole, and never null.
type planView struct {
	Profile   string `json:"profile"`
	Namespace string `json:"namespace"`
	// Outcome of what was asked about: nothing, now, waits or invalid.
	Outcome string `json:"outcome"`
	// Settings of the danger zone, and others that were asked about.
	Settings []planSetting `json:"settings"`
	// Works in the order in which they are done: first those that nothing keeps
	// back, pods one by one, each when the one before it is Ready.
	Works    []planWork    `json:"works"`
	Blockers []planBlocker `json:"blockers"`
	// Nodes whose CSI plugin pods restart for the network of RWX volumes, in the
	// order in which to drain them. Empty while all volumes have to be detached first.
	Nodes []planNode `json:"nodes"`
}

// asked are the settings that the plan is for: those that change; all, where none does.
func (v planView) asked() []planSetting {
	changed := slices.DeleteFunc(slices.Clone(v.Settings), func(s planSetting) bool { return !s.Changed })
	if len(changed) > 0 {
		return changed
	}
	return v.Settings
}

// planNode is one of those nodes.
type planNode struct {
	Node string `json:"node"`
	Pod  string `json:"pod"`
	// Volumes that are attached there, and the pods that use them.
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

// planSetting is one setting as it is and as it would be.
type planSetting struct {
	Name string `json:"name"`
	// Changed: it was asked about with --set or --unset.
	Changed bool      `json:"changed"`
	Now     planValue `json:"now"`
	Then    planValue `json:"then"`
	// Applies says whether it would be applied: applied (nothing is left to do), now,
	// partly, waits, or invalid (its value is malformed).
	Applies string `json:"applies"`
	// Reason in words.
	Reason   string         `json:"reason"`
	Gate     string         `json:"gate"`
	Progress []planProgress `json:"progress"`
	// Warnings that whoever makes the change would be given beside all this.
	Warnings []string `json:"warnings"`
	// appliedNow: the value in force now, without the changes, is rolled out.
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

type planValue struct {
	Value string `json:"value"`
	// Source is fairlead, the storage system's name, or default.
	Source string `json:"source"`
}

// planProgress is how many of one kind of component are built with the value.
type planProgress struct {
	Kind    string `json:"kind"`
	Updated int    `json:"updated"`
	Total   int    `json:"total"`
}

// planWork is one thing done to one component.
type planWork struct {
	// Action: Update a template, Restart a pod, Remove an instance manager, or
	// Move shared volumes to another network, which restarts client pods.
	Action string `json:"action"`
	// Kind and Component: what it is done to.
	Kind      string `json:"kind"`
	Component string `json:"component"`
	Node      string `json:"node,omitempty"`
	// Settings that it is done for, all at once.
	Settings []string `json:"settings"`
	// Wants is what the component is built with then, by trait.
	Wants map[string]string `json:"wants,omitempty"`
	// When: now; turn, when pods that were restarted before are Ready; or later.
	When string `json:"when"`
	// WaitsFor sums up what it waits for; blockers has all of it.
	WaitsFor string `json:"waitsFor,omitempty"`
}

// When works are done.
const (
	whenNow   = "now"
	whenTurn  = "turn"
	whenLater = "later"
)

// planBlocker is one concrete thing that is waited for, and by which settings.
type planBlocker struct {
	v1.Blocker
	Settings []string `json:"settings"`
}
