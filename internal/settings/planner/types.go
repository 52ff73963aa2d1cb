package planner

import (
	"time"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Facts are the input of a plan.
type Facts struct {
	Names longhorn.Names
	// Values in effect.
	Values catalog.Values
	// OwnValues are set in Fairlead's group, SystemValues in the storage system's. Values follows from both.
	OwnValues, SystemValues map[catalog.Name]string
	// Reported is the last reported status, by setting.
	Reported   map[catalog.Name]Reported
	Components []catalog.Component
	Nodes      catalog.Nodes
	// Classes are the priority classes. The API server refuses pods of a missing class. Nil is unknown, and blocks nothing.
	Classes map[string]bool
	// Rollout is that of the network for RWX volumes, with all volumes and existing networks. Its Desired follows from Values.
	Rollout rollout.Rollout
	// Held components must not be changed for a while, by name.
	Held map[string]Hold
	Now  time.Time
}

// Hold delays a repeated change of a component, since the same change was reverted or refused.
type Hold struct {
	// Wants are the traits that the change has written.
	Wants map[catalog.Trait]string
	// Seen is Component.Seen from before the change. While it is the same, the cache does not
	// show the change. Empty if the change was refused.
	Seen  string
	Until time.Time
	// Message is the probable cause.
	Message string
}

// WorkAction is an action on a component.
type WorkAction string

// Actions on components.
const (
	// UpdateComponent writes Work.Wants into a template. The template's own controller rolls it out.
	UpdateComponent WorkAction = "Update"
	// RestartComponent deletes a pod, and the storage system recreates it.
	RestartComponent WorkAction = "Restart"
	// RemoveComponent deletes an instance manager that the storage system does not recreate.
	RemoveComponent WorkAction = "Remove"
)

// Work is one action on one component, for all settings whose gates are open.
type Work struct {
	Action    WorkAction
	Component catalog.Component
	// Settings that require the action. The gate of each is open; for work that waits, closed.
	Settings []catalog.Name
	// Wants are the traits that the settings require.
	Wants map[catalog.Trait]Want
	// Blockers of work that waits.
	Blockers []catalog.Blocker
	// Window is the closed maintenance window, if the component waits for it beside its Blockers.
	Window []catalog.Blocker
}

// KindProgress counts the components of one kind that are rolled out.
type KindProgress struct {
	Kind           catalog.ComponentKind
	Updated, Total int
}

// SettingPlan is the state of one setting.
type SettingPlan struct {
	Name  catalog.Name
	Value catalog.Value
	// Applied: every component has the value, and so has the network for RWX volumes.
	Applied bool
	// Built: every component has the value. Components on nodes that are down are not counted.
	Built bool
	// ChoosesNetwork: the setting decides the network for RWX volumes.
	ChoosesNetwork bool
	Phase          rollout.Phase
	// Message says what the setting waits for, or that it is applied.
	Message string
	// Effect describes the work on components, now and later.
	Effect   string
	Blockers []catalog.Blocker
	Progress []KindProgress
}

// Plan is the work that follows from the values in effect.
type Plan struct {
	// Settings of the danger zone, in the order of the catalog.
	Settings []SettingPlan
	// Now is the work that may be done, in order. Pods restart one by one.
	Now []Work
	// Later is the work that waits. Settings with different blockers have separate entries.
	Later []Work
	// Ending are share managers in use. They end with their volume's attachment, without Fairlead.
	Ending []Work
	// Starting are the pods that must be Ready before the next pod restarts.
	Starting []catalog.Blocker
	// Network is the next step of the network for RWX volumes.
	Network rollout.Step
	// Outlook of that network, by Foresee only.
	Outlook rollout.Outlook
	// After is when to plan again without an event; 0 is never.
	After time.Duration
}

// Setting returns the state of a setting.
func (p Plan) Setting(name catalog.Name) (SettingPlan, bool) {
	for _, s := range p.Settings {
		if s.Name == name {
			return s, true
		}
	}
	return SettingPlan{}, false
}

// Next returns the work to do now, if there is any. Pods restart one by one, so a value that
// prevents pods from starting stops at the first. A pod that is not Ready restarts at once: the
// value may have been corrected.
func (p Plan) Next() (Work, bool) {
	for _, w := range p.Now {
		if w.Action == UpdateComponent || !w.Component.Ready {
			return w, true
		}
	}
	if len(p.Now) == 0 || len(p.Starting) > 0 {
		return Work{}, false
	}
	return p.Now[0], true
}

// Want is the value that a setting requires of a trait.
type Want struct {
	Setting catalog.Name
	// Text in the form of Component.Built.
	Text string
}

// Reported is the last reported status of a setting.
type Reported struct {
	// Rolled is the last value that was rolled out; nil if there was none.
	Rolled *string
	// Applied: the value in effect was rolled out.
	Applied bool
	// Underway: components have been changed for another value since, or are about to be.
	Underway bool
}

// Equal compares two reports.
func (t Reported) Equal(o Reported) bool {
	same := t.Rolled == o.Rolled || t.Rolled != nil && o.Rolled != nil && *t.Rolled == *o.Rolled
	return same && t.Applied == o.Applied && t.Underway == o.Underway
}

// rolledOut reports whether the value was rolled out, and nothing has changed since.
func (t Reported) rolledOut(d catalog.Definition, value string) bool {
	return t.Rolled != nil && !t.Underway && d.Same(*t.Rolled, value)
}

// demand is a setting whose value applies to components.
type demand struct {
	catalog.Definition
	normal string
	// invalid: the storage system uses its own value, and Fairlead does nothing for the trait
	// until the value is corrected.
	invalid bool
}

// want returns the value that the setting requires of a component; ok is false if it does not apply.
func (d demand) want(c catalog.Component, nodes catalog.Nodes) (want string, ok bool) {
	return d.Wants(d.normal, c, nodes)
}

// allDemands returns the settings that apply to components, in the order of the catalog: the first
// setting of a trait decides. A setting that is not set anywhere applies to none, unless its value
// in Fairlead's group was rolled out and removed.
func (f Facts) allDemands() []demand {
	var list []demand
	for _, d := range catalog.All() {
		if d.Wants == nil || f.Values[d.Name].Source == catalog.SourceDefault && !f.ResetsToDefault(d) {
			continue
		}
		normal, err := f.Values.Normal(d)
		if err == nil {
			list = append(list, demand{Definition: d, normal: normal})
		} else if theirs, has := f.SystemValues[d.Name]; has {
			if normal, err = d.Normalize(theirs); err != nil {
				normal, _ = d.Normalize(d.Default)
			}
			list = append(list, demand{d, normal, true})
		}
	}
	return list
}

// ResetsToDefault reports whether components must return to the default, since a value in
// Fairlead's group was rolled out and removed.
func (f Facts) ResetsToDefault(d catalog.Definition) bool {
	reported := f.Reported[d.Name]
	return d.ByFairlead && (reported.Underway || reported.Rolled != nil && !d.Same(*reported.Rolled, d.Default))
}
