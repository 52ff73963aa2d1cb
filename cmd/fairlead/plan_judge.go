package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/validators"
)

// accepted begins the webhook's words on what a change does and waits for.
const accepted = "accepted; "

var errRefused = errors.New("is refused, as by Fairlead's webhook")

// judge has each change judged by the webhook's own rule, as if it were made after
// those before it in the order of names. All that is refused comes back at once,
// with its causes, and what is warned of beside the plan by setting.
func judge(facts validators.SettingFacts, c changes) (map[catalog.Name][]string, error) {
	warnings := map[catalog.Name][]string{}
	var refusals []error
	for _, name := range slices.Sorted(maps.Keys(c)) {
		one, group := changes{name: c[name]}, longhorn.GroupVersion.Group
		if facts.Own = one.own(name, facts.Facts); facts.Own {
			group = v1alpha1.GroupVersion.Group
		}
		v := judgeOne(name, c[name], facts)
		for _, problem := range v.Problems {
			refusals = append(refusals, fmt.Errorf("%s of settings.%s %w: %w", name, group, errRefused, problem))
		}
		for _, w := range v.Warnings {
			if !strings.HasPrefix(w, accepted) { // the plan says it
				warnings[name] = append(warnings[name], w)
			}
		}
		facts.Facts = one.after(facts.Facts)
	}
	return warnings, errors.Join(refusals...)
}

// judgeOne judges a change of one setting. Where it changes nothing the webhook does not hear of it.
func judgeOne(name catalog.Name, value *string, facts validators.SettingFacts) validators.Verdict {
	values := facts.SystemValues
	if facts.Own {
		values = facts.OwnValues
	}
	was, there := values[name]
	switch {
	case value == nil && !there, value != nil && there && *value == was:
		return validators.Verdict{}
	case value == nil && !facts.Own:
		return validators.ValidateSettingDeletion(string(name), facts)
	}
	s := validators.Setting{Value: value}
	s.Metadata.Name, s.Metadata.Namespace = string(name), facts.Profile.Namespace
	var old *validators.Setting
	if there { // some of what may be created must not be changed
		old = &validators.Setting{Metadata: s.Metadata, Value: &was}
	}
	return validators.ValidateSetting(s, old, facts)
}
