package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/validators"
)

// Changes are the values to set by setting; nil removes the value.
type Changes map[catalog.Name]*string

var (
	errNotNameValue = errors.New("must be <name>=<value>")
	errTwice        = errors.New("is given more than once")
)

func parseChanges(set, unset []string) (Changes, error) {
	found := Changes{}
	for _, text := range set {
		name, value, isPair := strings.Cut(text, "=")
		if !isPair {
			return nil, fmt.Errorf("--set %q: %w", text, errNotNameValue)
		}
		if err := found.Set(name, value); err != nil {
			return nil, fmt.Errorf("--set %w", err)
		}
	}
	for _, name := range unset {
		if err := found.Unset(name); err != nil {
			return nil, fmt.Errorf("--unset %w", err)
		}
	}
	return found, nil
}

// Set adds a value. The webhook's rule judges it.
func (c Changes) Set(name, value string) error { return c.add(name, &value) }

// Unset takes the value of a setting in Fairlead's own group away.
func (c Changes) Unset(name string) error { return c.add(name, nil) }

func (c Changes) add(name string, value *string) error {
	if _, err := cli.LookupSetting(name); err != nil {
		return err
	}
	if _, ok := c[catalog.Name(name)]; ok {
		return fmt.Errorf("setting %s %w", name, errTwice)
	}
	c[catalog.Name(name)] = value
	return nil
}

// own reports whether the change is in Fairlead's own group: the storage system does not have the setting,
// or the change removes Fairlead's value.
func (c Changes) own(name catalog.Name, f planner.Facts) bool {
	_, inOwn := f.OwnValues[name]
	_, inSystem := f.SystemValues[name]
	return !inSystem || inOwn && c[name] == nil
}

// command makes the change. Its text is safe to paste into a shell.
func (c Changes) command(name catalog.Name, f planner.Facts) string {
	group := longhorn.GroupVersion.Group
	if c.own(name, f) {
		group = v1alpha1.GroupVersion.Group
	}
	var patch strings.Builder
	encoder := json.NewEncoder(&patch)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(map[string]*string{"value": c[name]}) // strings can be encoded
	quoted := strings.ReplaceAll(strings.TrimSpace(patch.String()), "'", `'\''`)
	return fmt.Sprintf("kubectl -n %s patch settings.%s %s --type merge -p '%s'", f.Names.Namespace, group, name, quoted)
}

// after returns the facts after the changes.
func (c Changes) after(f planner.Facts) planner.Facts {
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
	f.Values = catalog.Resolve(own, system)
	return f
}

// ErrRefused is the error of a change that the webhook would refuse.
var ErrRefused = errors.New("is refused, as by Fairlead's webhook")

// judge judges each change by the webhook's rule, in the order of names, each after the changes before.
// It returns all refusals with their causes, and the warnings by setting.
func judge(facts validators.SettingFacts, c Changes) (map[catalog.Name][]string, error) {
	facts.OmitEffect = true // the plan has the effect
	warnings := map[catalog.Name][]string{}
	var refusals []error
	for _, name := range slices.Sorted(maps.Keys(c)) {
		one, group := Changes{name: c[name]}, longhorn.GroupVersion.Group
		if facts.Own = one.own(name, facts.Facts); facts.Own {
			group = v1alpha1.GroupVersion.Group
		}
		v := judgeOne(name, c[name], facts)
		for _, problem := range v.Problems {
			refusals = append(refusals, fmt.Errorf("%s of settings.%s %w: %w", name, group, ErrRefused, problem))
		}
		warnings[name] = append(warnings[name], v.Warnings...)
		facts.Facts = one.after(facts.Facts)
	}
	return warnings, errors.Join(refusals...)
}

// judgeOne judges a change of one setting. The webhook gets no request without a change.
func judgeOne(name catalog.Name, value *string, facts validators.SettingFacts) validators.Verdict {
	values := facts.SystemValues
	if facts.Own {
		values = facts.OwnValues
	}
	was, exists := values[name]
	switch {
	case value == nil && !exists, value != nil && exists && *value == was:
		return validators.Verdict{}
	case value == nil && !facts.Own:
		return validators.ValidateSettingDeletion(string(name), facts)
	}
	s := validators.Setting{Value: value}
	s.Metadata.Name, s.Metadata.Namespace = string(name), facts.Names.Namespace
	var old *validators.Setting
	if exists { // some settings may be created, but not changed
		old = &validators.Setting{Metadata: s.Metadata, Value: &was}
	}
	return validators.ValidateSetting(s, old, facts)
}
