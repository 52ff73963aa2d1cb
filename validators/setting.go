package validators

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
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
	settings.Facts
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
	// User who makes the change, and whether RBAC allows him settings.OverrideVerb;
	// looked up only where an override is asked for.
	User        string
	MayOverride bool
	// overrides: the change itself asks for the gate to be overridden, for its own value, which is in force.
	overrides bool
}

// ValidateSetting judges the creation or change of a setting of the catalog.
//
// A value that is not well formed is refused. A well-formed one is accepted,
// attached volumes or not: what it waits for is said in a warning. Refused with
// reasons is what no later moment makes right: a class that does not exist, a
// data engine switched off under its volumes.
// Source: proposal "Support non-disruptive volume-related setting updates".
func ValidateSetting(s Setting, old *Setting, facts SettingFacts) Verdict {
	definition, known := settings.Lookup(s.Metadata.Name)
	if !known {
		return unknownSetting(s, facts)
	}
	if readOnly(s, old, facts) {
		return refuseReadOnly(s, facts)
	}
	facts = facts.changed(func(_, _ map[settings.Name]string) {})
	v := checkOverride(s, old, facts)
	if s.Value != nil {
		if problems := checkValue(definition, *s.Value, facts); len(problems) > 0 {
			v.refuse(ReasonInvalidValue, problems...)
			return v
		}
		v.checkNetworkExists(definition, *s.Value, facts)
	}
	after := facts.changed(func(own, system map[settings.Name]string) {
		values := system
		if facts.Own {
			values = own
		}
		delete(values, definition.Name)
		if s.Value != nil {
			values[definition.Name] = *s.Value
		}
	})
	inForce := facts.Own || after.Values[definition.Name].Source != settings.SourceFairlead
	asked := overrides(s) && len(v.Problems) == 0
	if inForce { // else its override is none of the gate that is looked at
		after.overrides = asked
		after.Overridden = maps.Clone(after.Overridden)
		if after.Overridden == nil {
			after.Overridden = map[settings.Name]bool{}
		}
		after.Overridden[definition.Name] = asked
	}
	v.checkEffect(definition, facts, after)
	if asked && !inForce {
		v.tellOverridesNothing(definition, after)
	}
	if len(v.Problems) == 0 && s.Value != nil {
		v.warnUnknown(definition, after)
	}
	return v
}

// ValidateSettingDeletion judges the deletion of a setting. The storage system's
// own can be changed, never deleted, as Longhorn has it; but for those that a
// later version replaces, which longhorn-manager deletes as it starts, and does
// not start if it can't. Fairlead's own can: then the storage system's value is
// in force again.
func ValidateSettingDeletion(name string, facts SettingFacts) Verdict {
	definition, known := settings.Lookup(name)
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
	var v Verdict
	facts = facts.changed(func(_, _ map[settings.Name]string) {})
	after := facts.changed(func(own, _ map[settings.Name]string) { delete(own, definition.Name) })
	v.checkEffect(definition, facts, after)
	if now, then := facts.Values[definition.Name], after.Values[definition.Name]; now.Text != then.Text {
		v.Warnings = append([]string{fmt.Sprintf("%s is %q from now on (%s)", name, then.Text, then.Source.Explain())}, v.Warnings...)
	}
	return v
}

func unknownSetting(s Setting, facts SettingFacts) Verdict {
	path := field.NewPath("metadata", "name")
	switch {
	case !facts.Own && s.Metadata.Name == string(settings.AutoCleanup):
		return checkCleanup(s, facts)
	case !facts.Own:
		return Verdict{Reason: ReasonValid} // the storage system's to judge
	case settings.ReadOnly(s.Metadata.Name):
		return refuseReadOnly(s, facts)
	}
	var names []string
	for _, d := range settings.All() {
		names = append(names, string(d.Name))
	}
	return Verdict{Reason: ReasonUnknown, Problems: field.ErrorList{field.NotSupported(path, s.Metadata.Name, names)}}
}

// changed are the facts as they would be after the change, with its values in force.
func (f SettingFacts) changed(change func(own, system map[settings.Name]string)) SettingFacts {
	f.OwnValues, f.SystemValues = maps.Clone(f.OwnValues), maps.Clone(f.SystemValues)
	if f.OwnValues == nil {
		f.OwnValues = map[settings.Name]string{}
	}
	if f.SystemValues == nil {
		f.SystemValues = map[settings.Name]string{}
	}
	change(f.OwnValues, f.SystemValues)
	f.Values = settings.Resolve(f.OwnValues, f.SystemValues, f.Profile.Name)
	return f
}

func (v *Verdict) refuse(reason string, problems ...*field.Error) {
	v.Reason = reason
	v.Problems = append(v.Problems, problems...)
}

func (v *Verdict) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}
