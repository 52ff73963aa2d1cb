package validators

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

// Setting is the view of a setting of the storage system or of Fairlead.
type Setting struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	// Value is nil if Fairlead's setting leaves the value to the storage system.
	Value *string `json:"value"`
}

// SettingFacts are the live facts about a change of a setting.
type SettingFacts struct {
	// Facts of the plan, as they were before the change.
	planner.Facts
	// Own: the setting is Fairlead's own, not the storage system's.
	Own bool
	// MissingPolicy for a value that names a network that does not exist.
	MissingPolicy settings.Strictness
	// Defaults are the values, by name, that the storage system writes into its settings at each start.
	Defaults map[string]string
	// Applies is false with duty settings: guard. Verdicts then do not say what Fairlead will do.
	Applies bool
	// Idle: no controller of Fairlead leads now.
	Idle bool
	// OmitEffect: verdicts do not say which components restart and when.
	OmitEffect bool
}

// ValidateSetting checks the creation or change of a setting of the catalog. A malformed value is refused, and so is a
// value in the wrong group. A well-formed value is accepted, also while volumes are attached: a warning says what the
// value waits for. Values that could never be applied are refused: a PriorityClass that does not exist, a data engine
// switched off under its volumes.
//
// Source: proposal "Support non-disruptive volume-related setting updates".
func ValidateSetting(s Setting, old *Setting, facts SettingFacts) Verdict {
	d, known := catalog.Lookup(s.Metadata.Name)
	if !known {
		return unknownSetting(s, facts)
	}
	var v Verdict
	if s.Value != nil {
		v.checkGroup(d, facts)
		v.checkReadOnly(d, s, old, facts)
		if len(v.Problems) > 0 {
			return v
		}
		if problems := checkValue(d, *s.Value, facts); len(problems) > 0 {
			v.refuse(ReasonInvalidValue, problems...)
			return v
		}
		v.checkNetworkExists(d, *s.Value, facts)
	}
	before := facts.changed(func(map[catalog.Name]string) {})
	after := facts.changed(func(values map[catalog.Name]string) {
		delete(values, d.Name)
		if s.Value != nil {
			values[d.Name] = *s.Value
		}
	})
	v.checkEffect(d, before, after)
	v.warnUndone(d, after.Values[d.Name].Text, facts)
	return v
}

// checkGroup refuses a value in Fairlead's group if the storage system has the setting, see catalog.Resolve.
func (v *Verdict) checkGroup(d catalog.Definition, facts SettingFacts) {
	if !facts.Own {
		return
	}
	if why := d.NotAtHome(facts.SystemValues); why != "" {
		v.refuse(ReasonWrongGroup, field.Forbidden(field.NewPath("value"), why))
	}
}

// ValidateSettingDeletion refuses the deletion of a setting of the storage system, as Longhorn does. Settings that a later
// version replaces may be deleted: longhorn-manager deletes them when it starts, and does not start if it can't.
// Fairlead's own settings may be deleted unless components are built with the value.
func ValidateSettingDeletion(name string, facts SettingFacts) Verdict {
	definition, known := catalog.Lookup(name)
	if !known || !facts.Own && definition.Until != "" {
		return Verdict{Reason: ReasonValid}
	}
	if !facts.Own {
		return refusal(ReasonNotDeletable, field.Forbidden(field.NewPath("metadata", "name"),
			fmt.Sprintf("setting %s can be changed but not deleted; set its value to %q, the default, instead", name, definition.Default)))
	}
	before := facts.changed(func(map[catalog.Name]string) {})
	after := facts.changed(func(own map[catalog.Name]string) { delete(own, definition.Name) })
	// The object records what components were changed to. Without the object they would keep the value.
	if definition.Wants != nil && (before.Values[definition.Name].Source == catalog.SourceFairlead || before.ResetsToDefault(definition)) {
		return refusal(ReasonNotDeletable, field.Forbidden(field.NewPath("metadata", "name"),
			fmt.Sprintf("components are built with %s: set the value to null, wait until the change is applied, then delete the setting", name)))
	}
	var v Verdict
	v.checkEffect(definition, before, after)
	if now, then := before.Values[definition.Name], after.Values[definition.Name]; now.Text != then.Text {
		v.Warnings = append([]string{fmt.Sprintf("%s is %q from now on (%s)", name, then.Text, then.Source.Explain())}, v.Warnings...)
	}
	return v
}

func unknownSetting(s Setting, facts SettingFacts) Verdict {
	path := field.NewPath("metadata", "name")
	switch {
	case !facts.Own && s.Metadata.Name == string(catalog.AutoCleanup):
		return checkCleanUp(s, facts)
	case !facts.Own:
		return Verdict{Reason: ReasonValid} // the storage system checks it
	}
	return refusal(ReasonUnknown, field.NotSupported(path, s.Metadata.Name, catalog.Names()))
}

// changed are the facts after a change of the values of the setting's group, with the values in effect then.
func (f SettingFacts) changed(change func(values map[catalog.Name]string)) SettingFacts {
	values := &f.SystemValues
	if f.Own {
		values = &f.OwnValues
	}
	*values = maps.Clone(*values)
	if *values == nil {
		*values = map[catalog.Name]string{}
	}
	change(*values)
	f.Values = catalog.Resolve(f.OwnValues, f.SystemValues)
	return f
}
