package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Only a disable-snapshot-purge beside a clean-up that says "true" to the letter
// was seen, and never the clean-up beside it.
func TestRegressionKeepingAndCleaningUpContradict(t *testing.T) {
	const (
		disable = catalog.DisableSnapshotPurge
		cleanup = catalog.AutoCleanup
	)
	for name, row := range map[string]struct {
		setting          catalog.Name
		value            string
		systemWas        values
		reason           string
		problem, warning string
	}{
		"kept, and cleaned up": {setting: disable, value: "true", systemWas: values{cleanup: "true", disable: "false"}, reason: ReasonContradicts,
			problem: `value: Forbidden: snapshots can't be kept from being purged while auto-cleanup-system-generated-snapshot is "true": set that to "false" first`},
		"kept, and cleaned up in another spelling": {setting: disable, value: "true", systemWas: values{cleanup: "1", disable: "false"}, reason: ReasonContradicts,
			problem: `value: Forbidden: snapshots can't be kept from being purged while auto-cleanup-system-generated-snapshot is "1": set that to "false" first`},
		"kept, and not cleaned up": {setting: disable, value: "true", systemWas: values{cleanup: "0", disable: "false"}, reason: ReasonValid},
		"cleaned up, and kept": {setting: cleanup, value: "true", systemWas: values{disable: "true"}, reason: ReasonContradicts,
			problem: `value: Forbidden: snapshots can't be cleaned up while disable-snapshot-purge is "true": set that to "false" first`},
		"cleaned up, and kept in another spelling": {setting: cleanup, value: "true", systemWas: values{disable: "1"}, reason: ReasonContradicts,
			problem: `value: Forbidden: snapshots can't be cleaned up while disable-snapshot-purge is "1": set that to "false" first`},
		"cleaned up in a spelling that Longhorn lets pass, and kept": {setting: cleanup, value: "1", systemWas: values{disable: "true"}, reason: ReasonValid,
			warning: `snapshots are not cleaned up while disable-snapshot-purge is "true": set one of the two to "false"`},
		"cleaned up, and not kept":              {setting: cleanup, value: "true", systemWas: values{disable: "false"}, reason: ReasonValid},
		"not cleaned up, and kept":              {setting: cleanup, value: "false", systemWas: values{disable: "true"}, reason: ReasonValid},
		"no switch at all is Longhorn's matter": {setting: cleanup, value: "x", systemWas: values{disable: "true"}, reason: ReasonValid},
	} {
		t.Run(name, func(t *testing.T) {
			facts := quiet()
			facts.SystemValues = row.systemWas
			var s Setting
			s.Metadata.Name, s.Value = string(row.setting), &row.value
			var problems, warnings []string
			if row.problem != "" {
				problems = []string{row.problem}
			}
			if row.warning != "" {
				warnings = []string{row.warning}
			}
			checkVerdict(t, ValidateSetting(s, nil, facts), row.reason, problems, warnings)
		})
	}
}
