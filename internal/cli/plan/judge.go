package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/validators"
)

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
	s.Metadata.Name, s.Metadata.Namespace = string(name), facts.Profile.Namespace
	var old *validators.Setting
	if exists { // some settings may be created, but not changed
		old = &validators.Setting{Metadata: s.Metadata, Value: &was}
	}
	return validators.ValidateSetting(s, old, facts)
}
