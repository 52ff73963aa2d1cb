package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/settings"
)

// changes are what a plan is for: values to set, and nil for those to take away.
type changes map[settings.Name]*string

// Groups that a plan may be for.
var ownGroup, systemGroup = v1alpha1.GroupVersion.Group, longhorn.GroupVersion.Group

// names in order.
func (c changes) names() []settings.Name { return slices.Sorted(maps.Keys(c)) }

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

// applied are the values of a group after the changes.
func (c changes) applied(values map[settings.Name]string) map[settings.Name]string {
	then := maps.Clone(values)
	if then == nil {
		then = map[settings.Name]string{}
	}
	for name, value := range c {
		if value == nil {
			delete(then, name)
		} else {
			then[name] = *value
		}
	}
	return then
}
