package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Longhorn refuses a change of it in every version that has it; Fairlead said
// that it is applied now.
func TestRegressionAReadOnlySettingIsLonghornsToWrite(t *testing.T) {
	const refused = "metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"
	was, value := "2048", "4096"
	other := &Setting{Value: &was}
	for name, row := range map[string]struct {
		old         *Setting
		value       *string
		annotations map[string]string
		refused     bool
	}{
		"changed":                  {old: other, value: &value, refused: true},
		"changed by Longhorn":      {old: other, value: &value, annotations: map[string]string{"longhorn.io/update-setting-from-longhorn": ""}},
		"created by Longhorn":      {value: &value},
		"an annotation is changed": {old: other, value: &was},
	} {
		t.Run(name, func(t *testing.T) {
			facts := situation(idle)
			var s Setting
			s.Metadata.Name, s.Metadata.Annotations, s.Value = string(catalog.V2HugepageLimit), row.annotations, row.value
			v := ValidateSetting(s, row.old, facts)
			if is := v.Reason == ReasonReadOnly && len(v.Problems) == 1 && v.Problems[0].Error() == refused; is != row.refused || len(v.Problems) > 0 != row.refused {
				t.Errorf("got %+v", v)
			}
		})
	}
}
