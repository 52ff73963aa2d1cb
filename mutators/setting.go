package mutators

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/settings"
)

// Setting is the view of a setting, the storage system's or Fairlead's own.
type Setting struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	// Value is nil where Fairlead's own setting leaves it to the storage system.
	Value *string `json:"value"`
}

// MutateSetting stores the value of a setting in its normal form, and writes
// down who overrides its gate.
//
// Objects: settings.longhorn.io of the danger zone and settings.fairlead.io, in the profile's namespace.
// Condition: the value is new or changes, or an override of the gate does.
func MutateSetting(s Setting, old *Setting, own bool, facts OverrideFacts) Result {
	return normalizeSetting(s, own).and(recordOverride(s, old, facts))
}

// normalizeSetting stores the value of a setting in its normal form, so that two
// spellings of one value are not two values: not to the storage system, which
// compares text, and not to who reads the status. A value that is not well formed
// is left to be refused.
func normalizeSetting(s Setting, own bool) Result {
	definition, known := settings.Lookup(s.Metadata.Name)
	if !known || s.Value == nil || !own && !definition.DangerZone {
		return unchanged(ReasonNoSetting, "")
	}
	normal, err := definition.Normalize(*s.Value)
	if err != nil {
		return unchanged(ReasonMalformed, err.Error())
	}
	if normal == *s.Value {
		return unchanged(ReasonAsItShouldBe, "")
	}
	result := mutated(ReasonNormalForm, fmt.Sprintf("%q instead of %q", normal, *s.Value), jsonpatch.NewOperation("replace", "/value", normal))
	result.Warnings = []string{fmt.Sprintf("stored as %q", normal)}
	return result
}
