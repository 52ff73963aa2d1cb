package plan

import (
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Facts are what a plan follows from.
type Facts struct {
	Profile storage.Profile
	// Values in force.
	Values catalog.Values
	// OwnValues and SystemValues are what they follow from: Fairlead's own and the storage system's.
	OwnValues, SystemValues map[catalog.Name]string
	// Told is what was last reported, by setting.
	Told map[catalog.Name]Told
	// Volumes of the profile, all of them.
	Volumes    []storage.Volume
	Components []catalog.Component
	Nodes      catalog.Nodes
	Existing   Existing
	// Rollout of the network of shared volumes; its Desired follows from Values.
	Rollout rollout.Rollout
	// Held components are left alone for a while, by name.
	Held map[string]Hold
	Now  time.Time
}

// Hold keeps a component from being changed again for a while: the same change
// was undone, or refused.
type Hold struct {
	// Wants are what the component was changed to, by trait.
	Wants map[catalog.Trait]string
	// Seen is Component.Seen from before the change: as long as it stays, the change has
	// yet to be seen. Empty if the change was refused.
	Seen  string
	Until time.Time
	// Message says what seems to be wrong.
	Message string
}

// WorkAction is what is done to a component.
type WorkAction string

// Actions on components.
const (
	// UpdateComponent writes Work.Wants into a template; its own controller rolls it out.
	UpdateComponent WorkAction = "Update"
	// RestartComponent deletes a pod; the storage system makes it anew.
	RestartComponent WorkAction = "Restart"
	// RemoveComponent deletes an instance manager for good.
	RemoveComponent WorkAction = "Remove"
)

// Work is one thing to do to one component, for all settings at once whose gates are open.
type Work struct {
	Action    WorkAction
	Component catalog.Component
	// Settings that it is done for: the gate of each is open, or, of work that
	// waits, closed.
	Settings []catalog.Name
	// Wants by trait, of those settings.
	Wants map[catalog.Trait]Want
	// Blockers of work that waits.
	Blockers []catalog.Blocker
}

// KindProgress is how many of one kind of component are rolled out.
type KindProgress struct {
	Kind           catalog.ComponentKind
	Updated, Total int
}

// SettingPlan is where one setting is.
type SettingPlan struct {
	Name  catalog.Name
	Value catalog.Value
	// Applied: every component is built with the value.
	Applied bool
	// Built: no component is waited for. One that is built with the value on a node
	// that is down counts in no progress, and is not; other than Applied, it is about components alone.
	Built bool
	// ChoosesNetwork: the roll-out of the network of shared volumes is about the setting.
	ChoosesNetwork bool
	Phase          rollout.Phase
	// Message says what is waited for, or that it is applied.
	Message string
	// Works says what of that is done to components now and later.
	Works    string
	Blockers []catalog.Blocker
	Progress []KindProgress
}

// Plan is what the values in force would do now.
type Plan struct {
	// Settings of the danger zone, in the catalog's order.
	Settings []SettingPlan
	// Now is what may be done, in this order: pods one by one, each when the one before it is Ready.
	Now []Work
	// Later is what waits, and for what: one Work for each component and setting,
	// since each setting waits for itself.
	Later []Work
	// Ending is the same of pods that nothing is done to, since they end by
	// themselves with what they wait for: share managers in use.
	Ending []Work
	// Starting are the pods to wait for before the next is restarted.
	Starting []catalog.Blocker
	// Network is the next step of the network of shared volumes.
	Network rollout.Step
	// AsksForNetworks: pods are to be restarted on a network, and Existing.Networks
	// is not known.
	AsksForNetworks bool
	// After is when to look again though nothing has happened; 0 is never.
	After time.Duration
}

// Of returns where the setting is.
func (p Plan) Of(name catalog.Name) (SettingPlan, bool) {
	for _, s := range p.Settings {
		if s.Name == name {
			return s, true
		}
	}
	return SettingPlan{}, false
}

// Next is the one thing to do now, if there is one. Another pod is restarted
// only when the one before it is back: a value that no pod starts with stops at
// the first. That one need not be back when the value is corrected, and comes first.
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
