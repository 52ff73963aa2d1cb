package options

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// spec is what is known of an option. The zero value takes any value, or none.
type spec struct {
	// decides is the group of options of which one holds; empty: the option alone.
	decides string
	check   func(name, value string, hasValue bool) error
}

// group is what the option decides.
func (s spec) group(name string) string {
	if s.decides != "" {
		return s.decides
	}
	return name
}

func find(name string) (spec, bool) {
	if s, ok := known[name]; ok {
		return s, true
	}
	if strings.HasPrefix(name, "X-mount.") {
		return spec{check: refused("mount(8) acts on it: it may mount another directory, or change the node's files")}, true
	}
	if strings.HasPrefix(name, "verity.") {
		return spec{check: refused(blockDevice)}, true
	}
	s := spec{check: func(string, string, bool) error { return nil }}
	// Options for other programs, which mount(8) drops.
	return s, strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "X-")
}

func flag(name, _ string, hasValue bool) error {
	if hasValue {
		return fmt.Errorf("%s takes no value: write %q", name, name)
	}
	return nil
}

func number(low, high int) func(string, string, bool) error {
	return func(name, value string, _ bool) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < low || n > high || value[0] == '+' {
			return fmt.Errorf("%s=%s is no number from %d to %d: write one", name, value, low, high)
		}
		return nil
	}
}

func oneOf(values ...string) func(string, string, bool) error {
	return func(name, value string, hasValue bool) error {
		if !hasValue || !slices.Contains(values, value) {
			return fmt.Errorf("%s=%s is not known: write %s= with one of %s", name, value, name, strings.Join(values, ", "))
		}
		return nil
	}
}

// optional takes the option without a value too.
func optional(check func(string, string, bool) error) func(string, string, bool) error {
	return func(name, value string, hasValue bool) error {
		if !hasValue {
			return nil
		}
		return check(name, value, hasValue)
	}
}

func text(name, value string, _ bool) error {
	if value == "" {
		return fmt.Errorf("%s needs a value: write %s=value", name, name)
	}
	return nil
}
