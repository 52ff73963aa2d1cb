package settings

import "slices"

// Want is what a setting asks of a component.
type Want struct {
	Setting Name
	// Text in the form of Component.Built.
	Text string
}

// Wanted is what the settings in force ask of a component, by trait. Where two
// settings decide one trait (a newer and an older name of it), the first of the
// catalog that is set does, one that nobody knows where it stands after those, and a
// default only where none is. system is what the storage system says itself.
//
// A setting that no resource sets asks for nothing: what was installed without
// it stays as it is. But one that Fairlead has applied another value of, and
// that was taken back since, asks for its default again: unless the storage
// system has no such setting and builds in its own way, see builtWithout.
func Wanted(values Values, system, applied map[Name]string, c Component, nodes Nodes) map[Trait]Want {
	wants := map[Trait]Want{}
	for _, s := range inForce(values, system, applied) {
		if _, decided := wants[s.Trait]; decided {
			continue
		}
		if text, ok := s.asks(c, nodes); ok {
			wants[s.Trait] = Want{s.Name, text}
		}
	}
	return wants
}

// forced is a setting whose value is to be rolled out.
type forced struct {
	Definition
	value Value
	asks  func(Component, Nodes) (string, bool)
	// unknown to the storage system, which builds in its own way
	unknown bool
}

// inForce are the settings that ask something of components, in the catalog's
// order, those that nobody knows after the others, and those back at their default last. One whose value is not well formed asks for nothing until it is corrected.
func inForce(values Values, system, applied map[Name]string) []forced {
	var settings, unknown, defaults []forced
	for _, d := range all {
		value := values[d.Name]
		if d.Wants == nil || !enforced(d, value, system, applied) {
			continue
		}
		normal, err := d.Normalize(value.Text)
		if err != nil {
			continue
		}
		s := forced{d, value, func(c Component, nodes Nodes) (string, bool) { return d.Wants(normal, c, nodes) },
			value.Source == SourceFairlead && d.builtWithout(system)}
		switch {
		case value.Source == SourceDefault:
			defaults = append(defaults, s)
		case s.unknown:
			unknown = append(unknown, s)
		default:
			settings = append(settings, s)
		}
	}
	return slices.Concat(settings, unknown, defaults)
}

func enforced(d Definition, value Value, system, applied map[Name]string) bool {
	if value.Source != SourceDefault {
		return true
	}
	was, known := applied[d.Name]
	return known && was != d.Default && !d.builtWithout(system)
}
