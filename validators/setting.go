package validators

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Setting is the view of a setting, the storage system's or Fairlead's own.
type Setting struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	// Value is nil where Fairlead's own setting leaves it to the storage system.
	Value *string `json:"value"`
}

// SettingFacts are the facts that a change of a setting is judged by, read live.
type SettingFacts struct {
	// Facts of the plan, as they were before the change.
	plan.Facts
	// Own tells Fairlead's own settings from the storage system's.
	Own bool
	// Networks in the cluster. NetworksKnown is false where they could not be listed.
	Networks      []storage.Network
	NetworksKnown bool
	// MissingPolicy is what becomes of a value that names a network that does not exist.
	MissingPolicy Strictness
	// PriorityClasses in the cluster.
	PriorityClasses []string
	// Applies is false where Fairlead only guards: then it does not say what it will do.
	Applies bool
}

// ValidateSetting judges the creation or change of a setting of the catalog.
//
// A value that is not well formed is refused, and so is one outside the setting's
// home. A well-formed one is accepted, attached volumes or not: what it waits for is
// said in a warning. Refused with reasons is what no later moment makes right: a
// class that does not exist, a data engine switched off under its volumes.
// Source: proposal "Support non-disruptive volume-related setting updates".
func ValidateSetting(s Setting, old *Setting, facts SettingFacts) Verdict {
	d, known := catalog.Lookup(s.Metadata.Name)
	if !known {
		return unknownSetting(s, facts)
	}
	var v Verdict
	if s.Value != nil {
		v.checkHome(d, facts)
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
	return v
}

// checkHome: a setting has one home, see settings.Resolve.
func (v *Verdict) checkHome(d catalog.Definition, facts SettingFacts) {
	if !facts.Own {
		return
	}
	if why := d.NotAtHome(facts.SystemValues, facts.Profile.Name); why != "" {
		v.refuse(ReasonNotAtHome, field.Forbidden(field.NewPath("value"), why))
	}
}

// ValidateSettingDeletion judges the deletion of a setting. The storage system's
// own can be changed, never deleted, as Longhorn has it; but for those that a
// later version replaces, which longhorn-manager deletes as it starts, and does
// not start if it can't. Fairlead's own can.
func ValidateSettingDeletion(name string, facts SettingFacts) Verdict {
	definition, known := catalog.Lookup(name)
	if !known {
		return Verdict{Reason: ReasonValid}
	}
	// Longhorn deletes by itself, as it starts, what its version does not know any more.
	if !facts.Own && definition.Until != "" {
		return Verdict{Reason: ReasonValid}
	}
	if !facts.Own {
		return Verdict{Reason: ReasonNotDeletable, Problems: field.ErrorList{field.Forbidden(
			field.NewPath("metadata", "name"),
			fmt.Sprintf("setting %s can be changed but not deleted; set its value to %q, the default, instead", name, definition.Default),
		)}}
	}
	before := facts.changed(func(map[catalog.Name]string) {})
	after := facts.changed(func(own map[catalog.Name]string) { delete(own, definition.Name) })
	// The object knows what components were changed to; without it they would stay so.
	if definition.Wants != nil && (before.Values[definition.Name].Source == catalog.SourceFairlead || before.TakenBack(definition)) {
		return Verdict{Reason: ReasonNotDeletable, Problems: field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"),
			fmt.Sprintf("components are built with %s: set its value to null and wait until that is applied, then delete it", name))}}
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
		return checkCleanup(s, facts)
	case !facts.Own:
		return Verdict{Reason: ReasonValid} // the storage system's to judge
	}
	var names []string
	for _, d := range catalog.All() {
		names = append(names, string(d.Name))
	}
	return Verdict{Reason: ReasonUnknown, Problems: field.ErrorList{field.NotSupported(path, s.Metadata.Name, names)}}
}

// changed are the facts as they would be after a change of the values of the
// setting's group, with the values that are in force then.
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
	f.Values = catalog.Resolve(f.OwnValues, f.SystemValues, f.Profile.Name)
	return f
}

func (v *Verdict) refuse(reason string, problems ...*field.Error) {
	v.Reason = reason
	v.Problems = append(v.Problems, problems...)
}

func (v *Verdict) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}
