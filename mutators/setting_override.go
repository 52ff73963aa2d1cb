package mutators

import (
	"fmt"
	"time"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/settings"
)

// OverrideFacts are who changes a setting, and when.
type OverrideFacts struct {
	User string
	Now  time.Time
}

// recordOverride writes down who overrides the gate of a setting, why and for
// which value, and keeps such a record from being lost. A request is for one
// value: with another value it is taken away. Whether he may is for the
// validating webhook, which sees what is written here.
//
// Objects: as MutateSetting. Condition: settings.OverrideAnnotation or
// settings.OverriddenAnnotation comes, changes or goes, or the value changes
// beside them.
func recordOverride(s Setting, old *Setting, facts OverrideFacts) Result {
	var before Setting
	if old != nil {
		before = *old
	}
	is, was := s.Metadata.Annotations[settings.OverriddenAnnotation], before.Metadata.Annotations[settings.OverriddenAnnotation]
	reason, asked := s.Metadata.Annotations[settings.OverrideAnnotation], before.Metadata.Annotations[settings.OverrideAnnotation]
	want := was // kept, whoever replaces the object without it
	var result Result
	switch {
	case reason == "" || s.Value == nil && asked == "":
	case reason == asked && (s.Value == nil || before.Value == nil || normalForm(s) != normalForm(before)):
		result = mutated(ReasonOverrideClosed, "the override was for another value",
			jsonpatch.NewOperation("remove", "/metadata"+annotationPath(settings.OverrideAnnotation), nil))
		result.Warnings = []string{"the override of the gate was for another value and is closed; to override it for this one, give a new reason"}
	case reason != asked && !used(was, reason, normalForm(s)):
		want = settings.Override{By: facts.User, Reason: reason, Value: normalForm(s), At: facts.Now.UTC().Truncate(time.Second)}.Text()
	}
	if want == "" || want == is {
		if result.Outcome == "" {
			return unchanged(ReasonAsItShouldBe, "")
		}
		return result
	}
	operation := annotate("/metadata", s.Metadata.Annotations != nil, settings.OverriddenAnnotation, want)
	switch {
	case result.Outcome != "":
		result.Patch = append(result.Patch, operation)
		return result
	case want == was:
		return mutated(ReasonOverrideKept, "", operation)
	}
	return mutated(ReasonOverrideRecorded, fmt.Sprintf("by %s: %s", facts.User, reason), operation)
}

// used tells whether the record is of this very override: it is not asked for
// twice, so that a manifest that is applied again and again does not keep the gate open.
func used(record, reason, value string) bool {
	_, holds := settings.ReadOverride(map[string]string{settings.OverrideAnnotation: reason, settings.OverriddenAnnotation: record}, value)
	return holds
}

// normalForm is the value as MutateSetting stores it.
func normalForm(s Setting) string {
	if s.Value == nil {
		return ""
	}
	if definition, known := settings.Lookup(s.Metadata.Name); known {
		if normal, err := definition.Normalize(*s.Value); err == nil {
			return normal
		}
	}
	return *s.Value
}
