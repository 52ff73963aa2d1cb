package mutators

import (
	"fmt"
	"time"

	"github.com/fairlead-io/fairlead/settings"
)

// OverrideFacts are who changes a setting, and when.
type OverrideFacts struct {
	User string
	Now  time.Time
}

// recordOverride writes down who overrides the gate of a setting, why and for
// which value, and keeps such a record from being lost. Whether he may is for
// the validating webhook, which sees what is written here.
//
// Objects: as MutateSetting. Condition: settings.OverrideAnnotation or
// settings.OverriddenAnnotation comes, changes or goes, or the value changes
// beside them.
func recordOverride(s Setting, old *Setting, facts OverrideFacts) Result {
	is := s.Metadata.Annotations[settings.OverriddenAnnotation]
	var before map[string]string
	if old != nil {
		before = old.Metadata.Annotations
	}
	was := before[settings.OverriddenAnnotation]
	reason := s.Metadata.Annotations[settings.OverrideAnnotation]
	want := was // kept, whoever replaces the object without it
	if reason != "" && s.Value != nil {
		value := normalForm(s)
		// One that was closed and is asked for again is another one.
		if _, holds := settings.ReadOverride(before, value); !holds || before[settings.OverrideAnnotation] != reason {
			want = settings.Override{By: facts.User, Reason: reason, Value: value, At: facts.Now.UTC().Truncate(time.Second)}.Text()
		}
	}
	if want == "" || want == is {
		return unchanged(ReasonAsItShouldBe, "")
	}
	operation := annotate("/metadata", s.Metadata.Annotations != nil, settings.OverriddenAnnotation, want)
	if want == was {
		return mutated(ReasonOverrideKept, "", operation)
	}
	return mutated(ReasonOverrideRecorded, fmt.Sprintf("by %s: %s", facts.User, reason), operation)
}

// normalForm is the value as MutateSetting stores it.
func normalForm(s Setting) string {
	if definition, known := settings.Lookup(s.Metadata.Name); known {
		if normal, err := definition.Normalize(*s.Value); err == nil {
			return normal
		}
	}
	return *s.Value
}
