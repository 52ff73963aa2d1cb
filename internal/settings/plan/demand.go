package plan

import (
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

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
