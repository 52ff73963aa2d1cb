package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/validators"
)

// accepted begins the webhook's words on what a change does and waits for.
const accepted = "accepted; "

var errRefused = errors.New("is refused, as by Fairlead's webhook")

// judge has each change judged by the webhook's own rule, as if it were made after
// those before it in the order of names. All that is refused comes back at once,
// with its causes, and what is warned of beside the plan by setting.
func judge(facts validators.SettingFacts, q request) (map[settings.Name][]string, error) {
	warnings := map[settings.Name][]string{}
	var refusals []error
	for _, name := range q.names() {
		v := q.judgeOne(name, facts)
		for _, problem := range v.Problems {
			refusals = append(refusals, fmt.Errorf("%s of settings.%s %w: %w", name, q.groupOf(name, facts.Facts), errRefused, problem))
		}
		for _, w := range v.Warnings {
			if !strings.HasPrefix(w, accepted) { // the plan says it
				warnings[name] = append(warnings[name], w)
			}
		}
		facts.Facts = q.after(name, facts.Facts)
	}
	return warnings, errors.Join(refusals...)
}

// after are the facts after a change of one setting.
func (q request) after(name settings.Name, f settings.Facts) settings.Facts {
	f.OwnValues, f.SystemValues = request{changes{name: q.changes[name]}}.to(f)
	f.Values = settings.Resolve(f.OwnValues, f.SystemValues, f.Profile.Name)
	return f
}

// judgeOne judges a change of one setting. Where it changes nothing the webhook does not hear of it.
func (q request) judgeOne(name settings.Name, facts validators.SettingFacts) validators.Verdict {
	values := facts.SystemValues
	if facts.Own = q.own(name, facts.Facts); facts.Own {
		values = facts.OwnValues
	}
	was, there := values[name]
	value := q.changes[name]
	switch {
	case value == nil && !there, value != nil && there && *value == was:
		return validators.Verdict{}
	case value == nil:
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

func (q request) groupOf(name settings.Name, f settings.Facts) string {
	if q.own(name, f) {
		return ownGroup
	}
	return systemGroup
}

// warn adds to settings what the webhook would warn of.
func (v *planView) warn(warnings map[settings.Name][]string) {
	for i, s := range v.Settings {
		v.Settings[i].Warnings = append(s.Warnings, warnings[settings.Name(s.Name)]...)
	}
}
