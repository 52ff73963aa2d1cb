package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Longhorn refuses such a change in every version that has the setting. Fairlead reported it as applied.
func TestRegressionReadOnlySettingIsLonghornsToWrite(t *testing.T) {
	const was, value = "2048", "4096"
	stored := settingOf(catalog.V2HugepageLimit, was)
	byLonghorn := settingOf(catalog.V2HugepageLimit, value)
	byLonghorn.Metadata.Annotations = map[string]string{"longhorn.io/update-setting-from-longhorn": ""}
	for name, row := range map[string]struct {
		old     *Setting
		setting Setting
		refused bool
	}{
		"changed":             {&stored, settingOf(catalog.V2HugepageLimit, value), true},
		"changed by Longhorn": {&stored, byLonghorn, false},
		"created by Longhorn": {nil, settingOf(catalog.V2HugepageLimit, value), false},
		"value unchanged":     {&stored, settingOf(catalog.V2HugepageLimit, was), false},
	} {
		v := ValidateSetting(row.setting, row.old, idle.facts())
		refused := v.Reason == ReasonReadOnly
		must.Check(t, refused == row.refused && refused == (len(v.Problems) == 1) && (refused || len(v.Problems) == 0), "%s: got %+v", name, v)
	}
}
