package main

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/fairlead-io/fairlead/settings"
)

// changes are what a plan is for: values to set, and nil for those to take away
// from Fairlead's own group.
type changes map[settings.Name]*string

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
		if _, there := found[settings.Name(name)]; there {
			return fmt.Errorf("setting %s %w", name, errTwice)
		}
		found[settings.Name(name)] = value
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
		if d, _ := settings.Lookup(name); d.Parse(value) != nil {
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

// to are the values of Fairlead's own group and the storage system's after the
// changes. A value is set where PUT of the REST API sets it: where the storage
// system has the setting and Fairlead's own group says nothing, in its own.
func (c changes) to(own, system map[settings.Name]string) (ownThen, systemThen map[settings.Name]string) {
	ownThen, systemThen = maps.Clone(own), maps.Clone(system)
	for name, value := range c {
		_, inOwn := own[name]
		_, inSystem := system[name]
		switch {
		case value == nil:
			delete(ownThen, name)
		case inSystem && !inOwn:
			systemThen[name] = *value
		default:
			ownThen[name] = *value
		}
	}
	return ownThen, systemThen
}
