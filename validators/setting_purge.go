package validators

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// refuseCleanedUp: snapshots are not kept while they are cleaned up. Longhorn
// has it so, and reads the other setting as strconv.ParseBool does.
// Source: longhorn-manager datastore/longhorn.go, ValidateSetting.
func (v *Verdict) refuseCleanedUp(normal string, after SettingFacts) {
	if cleanup := after.SystemValues[catalog.AutoCleanup]; normal == "true" && isOn(cleanup) {
		v.refuse(ReasonContradicts, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
			`snapshots can't be kept from being purged while %s is %q: set that to "false" first`, catalog.AutoCleanup, cleanup)))
	}
}

// checkCleanup is the same the other way round, for a setting that is otherwise
// the storage system's to judge. Longhorn refuses "true" alone, and lets other spellings pass.
func checkCleanup(s Setting, facts SettingFacts) Verdict {
	v := Verdict{Reason: ReasonValid}
	if s.Value == nil || !isOn(*s.Value) {
		return v
	}
	theirs := facts.SystemValues[catalog.DisableSnapshotPurge]
	switch {
	case isOn(theirs) && *s.Value == "true":
		v.refuse(ReasonContradicts, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
			`snapshots can't be cleaned up while %s is %q: set that to "false" first`, catalog.DisableSnapshotPurge, theirs)))
	case isOn(theirs):
		v.warn(`snapshots are not cleaned up while %s is %q: set one of the two to "false"`, catalog.DisableSnapshotPurge, theirs)
	}
	return v
}

// isOn reads a switch as Longhorn does, in any of its spellings.
func isOn(value string) bool {
	on, err := strconv.ParseBool(strings.TrimSpace(value))
	return err == nil && on
}
