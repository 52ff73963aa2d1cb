package validators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/settings"
)

// AsksForOverride tells whether a change touches the override of a gate: then it
// is to be looked up whether the user may.
func AsksForOverride(s Setting, old *Setting) bool {
	return noteIn(s, settings.OverrideAnnotation) != noteOf(old, settings.OverrideAnnotation) ||
		noteIn(s, settings.OverriddenAnnotation) != noteOf(old, settings.OverriddenAnnotation) ||
		overrides(s) && (old == nil || !overrides(*old)) // a value that comes back to an old override
}

// maxReason is how long the reason of an override may be: it is told in events, which take 1 KiB.
const maxReason = 512

// checkOverride judges the breaking of the glass: a reason, somebody whom RBAC
// allows the verb, and a record in his own name, which the mutating webhook
// writes. Taking the request away closes the gate, and anybody who may change the setting may.
func checkOverride(s Setting, old *Setting, facts SettingFacts) Verdict {
	var v Verdict
	if !AsksForOverride(s, old) {
		return v
	}
	path := field.NewPath("metadata", "annotations")
	reason, asked := s.Metadata.Annotations[settings.OverrideAnnotation]
	recordChanged := noteIn(s, settings.OverriddenAnnotation) != noteOf(old, settings.OverriddenAnnotation)
	switch {
	case !asked && !recordChanged:
		return v
	case !asked:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(settings.OverriddenAnnotation), "is written by Fairlead and stays for the record: leave it as it is"))
	case reason == "":
		v.refuse(ReasonOverride, field.Required(path.Key(settings.OverrideAnnotation), "say why the gate is to be overridden"))
	case unoverridable(s) != "":
		v.refuse(ReasonOverride, field.Forbidden(path.Key(settings.OverrideAnnotation), unoverridable(s)))
	case len(reason) > maxReason:
		v.refuse(ReasonOverride, field.TooLong(path.Key(settings.OverrideAnnotation), reason, maxReason))
	case !facts.MayOverride:
		v.refuse(ReasonOverride, field.Forbidden(path.Key(settings.OverrideAnnotation), fmt.Sprintf(
			"%s may not override gates: that takes the verb %q on settings.fairlead.io (ClusterRole fairlead-break-glass); without it, the setting is applied when nothing is hurt",
			facts.User, settings.OverrideVerb)))
	case old != nil && !recordChanged && noteIn(s, settings.OverrideAnnotation) != noteOf(old, settings.OverrideAnnotation) && overrides(s):
		v.refuse(ReasonOverride, field.Forbidden(path.Key(settings.OverrideAnnotation),
			"this override was used before: give a new reason (and do not keep the annotation in files that are applied again)"))
	default:
		o, holds := settings.ReadOverride(s.Metadata.Annotations, value(s))
		switch {
		case noteIn(s, settings.OverriddenAnnotation) == "":
			v.refuse(ReasonOverride, field.Forbidden(path.Key(settings.OverrideAnnotation),
				"who overrides the gate was not written down: there is no value to override it for, or Fairlead's mutating webhook did not answer; try again"))
		case !holds || o.By != facts.User:
			v.refuse(ReasonOverride, field.Forbidden(path.Key(settings.OverriddenAnnotation), "must be as Fairlead's mutating webhook writes it: leave it out"))
		}
	}
	return v
}

// unoverridable says why a gate can't be overridden, where it can't.
func unoverridable(s Setting) string {
	d, _ := settings.Lookup(s.Metadata.Name)
	switch d.Gate {
	case settings.SharedVolumesDetached:
		return "the gate of " + s.Metadata.Name + " can't be overridden: its clients would be where their servers can't be reached; detach the RWX volumes"
	case settings.AtOnce:
		return s.Metadata.Name + " has no gate: it is applied at once"
	}
	return ""
}

// tellOverridesNothing: Longhorn's value is not in force, and so nobody would record
// that its gate was overridden, or tell of it. What was to be overridden is refused.
func (v *Verdict) tellOverridesNothing(d settings.Definition, after SettingFacts) {
	instead := "annotate that, or take its value back"
	if after.unheeded(d) != "" { // nothing is applied of that
		instead = "take its value back"
	}
	text := fmt.Sprintf("overrides no gate: settings.fairlead.io %s is in force; %s", d.Name, instead)
	if len(v.Problems) == 0 {
		v.warn("%s", text)
	} else if v.Reason == ReasonEngineInUse {
		v.refuse(v.Reason, field.Forbidden(field.NewPath("metadata", "annotations").Key(settings.OverrideAnnotation), text))
	}
}

// overrides tells whether the gate is overridden for the value that is set.
func overrides(s Setting) bool {
	_, holds := settings.ReadOverride(s.Metadata.Annotations, value(s))
	return holds
}

func value(s Setting) string {
	if s.Value == nil {
		return ""
	}
	return *s.Value
}

func noteIn(s Setting, key string) string { return s.Metadata.Annotations[key] }

func noteOf(s *Setting, key string) string {
	if s == nil {
		return ""
	}
	return noteIn(*s, key)
}
