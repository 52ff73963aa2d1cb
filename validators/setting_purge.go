package validators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// refuseWithCleanUp refuses to keep snapshots while they are cleaned up, as Longhorn does. Longhorn reads the other setting
// with strconv.ParseBool.
//
// Source: longhorn-manager datastore/longhorn.go, ValidateSetting.
func (v *Verdict) refuseWithCleanUp(normal string, after SettingFacts) {
	if cleanUp := after.SystemValues[catalog.AutoCleanup]; normal == "true" && catalog.IsOn(cleanUp) {
		v.refuse(ReasonContradicts, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
			`snapshots can't be kept while %s is %q: set %[1]s to "false" first`, catalog.AutoCleanup, cleanUp)))
	}
}

// checkCleanUp is refuseWithCleanUp for the other setting, which is not in the catalog. Longhorn refuses only "true", and
// accepts other spellings.
func checkCleanUp(s Setting, facts SettingFacts) Verdict {
	v := Verdict{Reason: ReasonValid}
	if s.Value == nil || !catalog.IsOn(*s.Value) {
		return v
	}
	disabled := facts.SystemValues[catalog.DisableSnapshotPurge]
	switch {
	case catalog.IsOn(disabled) && *s.Value == "true":
		v.refuse(ReasonContradicts, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
			`snapshots can't be cleaned up while %s is %q: set %[1]s to "false" first`, catalog.DisableSnapshotPurge, disabled)))
	case catalog.IsOn(disabled):
		v.warn(`snapshots are not cleaned up while %s is %q: set one of the two settings to "false"`, catalog.DisableSnapshotPurge, disabled)
	}
	return v
}
