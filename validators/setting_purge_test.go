package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Only disable-snapshot-purge was checked, and only against a clean-up that is spelled "true".
func TestRegressionKeepingAndCleaningUpContradict(t *testing.T) {
	const (
		disable = catalog.DisableSnapshotPurge
		cleanUp = catalog.AutoCleanup
		notKept = `value: Forbidden: snapshots can't be kept while auto-cleanup-system-generated-snapshot is "1": set auto-cleanup-system-generated-snapshot to "false" first`
		kept    = `value: Forbidden: snapshots can't be cleaned up while disable-snapshot-purge is "1": set disable-snapshot-purge to "false" first`
	)
	for name, row := range map[string]struct {
		setting           catalog.Name
		value             string
		cleanUp, disabled string
		reason            string
		problems          []string
		warnings          []string
	}{
		"kept and cleaned up":         {setting: disable, value: "true", cleanUp: "1", reason: ReasonContradicts, problems: []string{notKept}},
		"kept and not cleaned up":     {setting: disable, value: "true", cleanUp: "0", reason: ReasonValid},
		"not kept any more":           {setting: disable, value: "false", cleanUp: "1", disabled: "true", reason: ReasonValid},
		"cleaned up and kept":         {setting: cleanUp, value: "true", disabled: "1", reason: ReasonContradicts, problems: []string{kept}},
		"cleaned up and not kept":     {setting: cleanUp, value: "true", disabled: "false", reason: ReasonValid},
		"not cleaned up and kept":     {setting: cleanUp, value: "false", disabled: "true", reason: ReasonValid},
		"Longhorn judges other words": {setting: cleanUp, value: "x", disabled: "true", reason: ReasonValid},
		"spelling that Longhorn accepts": {setting: cleanUp, value: "1", disabled: "true", reason: ReasonValid,
			warnings: []string{`snapshots are not cleaned up while disable-snapshot-purge is "true": set one of the two settings to "false"`}},
	} {
		t.Run(name, func(t *testing.T) {
			facts := idle.facts()
			facts.SystemValues[cleanUp], facts.SystemValues[disable] = row.cleanUp, row.disabled
			checkVerdict(t, ValidateSetting(settingOf(row.setting, row.value), nil, facts), row.reason, row.problems, row.warnings)
		})
	}
}
