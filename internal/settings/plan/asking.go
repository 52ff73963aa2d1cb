package plan

import (
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Want is what a setting asks of a component.
type Want struct {
	Setting catalog.Name
	// Text in the form of Component.Built.
	Text string
}

// Told is what was last reported of a setting.
type Told struct {
	// Rolled is the value that was last seen rolled out; nil where none was.
	Rolled *string
	// Applied: it was in force then, and rolled out.
	Applied bool
	// Underway: components were changed for another value since, or are about to be.
	Underway bool
}

// Equal tells whether the same was reported.
func (t Told) Equal(o Told) bool {
	same := t.Rolled == o.Rolled || t.Rolled != nil && o.Rolled != nil && *t.Rolled == *o.Rolled
	return same && t.Applied == o.Applied && t.Underway == o.Underway
}

// rolledOut tells whether the value was last seen rolled out, and nothing was changed since.
func (t Told) rolledOut(d catalog.Definition, value string) bool {
	return t.Rolled != nil && !t.Underway && d.Same(*t.Rolled, value)
}

// asking is a setting that asks something of components, with its normal value.
type asking struct {
	catalog.Definition
	normal string
	// unclear: the storage system builds by the setting, but nothing is done for the
	// value until it is corrected; nor for a setting that would decide in its place.
	unclear bool
}

// asks is what the setting asks of a component; ok is false if it asks nothing of it.
func (a asking) asks(c catalog.Component, nodes catalog.Nodes) (want string, ok bool) {
	return a.Wants(a.normal, c, nodes)
}

// allAsking are the settings that ask something of components, in the catalog's
// order: of two that decide the same trait the first does. A setting that no
// resource sets asks for nothing, and what was installed without it stays. But a
// value in Fairlead's group that was rolled out and taken away asks for the default.
func (f Facts) allAsking() []asking {
	var list []asking
	for _, d := range catalog.All() {
		if d.Wants == nil || f.Values[d.Name].Source == catalog.SourceDefault && !f.TakenBack(d) {
			continue
		}
		normal, err := f.Values.Normal(d)
		if err == nil {
			list = append(list, asking{Definition: d, normal: normal})
		} else if theirs, has := f.SystemValues[d.Name]; has {
			if normal, err = d.Normalize(theirs); err != nil {
				normal, _ = d.Normalize(d.Default)
			}
			list = append(list, asking{d, normal, true})
		}
	}
	return list
}

// TakenBack tells whether a value in Fairlead's group was rolled out, and components
// are to be brought back to the default.
func (f Facts) TakenBack(d catalog.Definition) bool {
	told := f.Told[d.Name]
	return d.ByFairlead && (told.Underway || told.Rolled != nil && !d.Same(*told.Rolled, d.Default))
}
