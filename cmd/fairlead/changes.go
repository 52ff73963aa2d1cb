package main

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

// changes are what a plan is for: values to set, and nil for those to take away.
type changes map[catalog.Name]*string

var (
	errNotNameValue = errors.New("must be <name>=<value>")
	errTwice        = errors.New("is given more than once")
)

func parseChanges(set, unset []string) (changes, error) {
	found := changes{}
	add := func(name string, value *string) error {
		if _, err := lookup(name); err != nil {
			return err
		}
		if _, there := found[catalog.Name(name)]; there {
			return fmt.Errorf("setting %s %w", name, errTwice)
		}
		found[catalog.Name(name)] = value
		return nil
	}
	for _, text := range set {
		name, value, isPair := strings.Cut(text, "=")
		if !isPair {
			return nil, fmt.Errorf("--set %q: %w", text, errNotNameValue)
		}
		if err := add(name, &value); err != nil {
			return nil, fmt.Errorf("--set %w", err)
		}
		if d, _ := catalog.Lookup(name); d.Parse(value) != nil {
			return nil, fmt.Errorf("--set %s: value %q %w", name, value, d.Parse(value))
		}
	}
	for _, name := range unset {
		if err := add(name, nil); err != nil {
			return nil, fmt.Errorf("--unset %w", err)
		}
	}
	return found, nil
}

// own tells whether a setting is changed in Fairlead's own group: where the storage
// system does not have it, or a value beside the storage system's is taken away.
func (c changes) own(name catalog.Name, f plan.Facts) bool {
	_, inOwn := f.OwnValues[name]
	_, inSystem := f.SystemValues[name]
	return !inSystem || inOwn && c[name] == nil
}

// after are the facts after the changes.
func (c changes) after(f plan.Facts) plan.Facts {
	own, system := map[catalog.Name]string{}, map[catalog.Name]string{}
	maps.Copy(own, f.OwnValues)
	maps.Copy(system, f.SystemValues)
	for name, value := range c {
		values := system
		if c.own(name, f) {
			values = own
		}
		if value == nil {
			delete(values, name)
		} else {
			values[name] = *value
		}
	}
	f.OwnValues, f.SystemValues = own, system
	f.Values = catalog.Resolve(own, system, f.Profile.Name)
	return f
}
