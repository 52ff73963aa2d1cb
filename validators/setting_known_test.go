package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/settings"
)

// Longhorn refuses a change of it in every version that has it; Fairlead said
// that it is applied now.
func TestRegressionAReadOnlySettingIsLonghornsToWrite(t *testing.T) {
	const refused = "metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"
	was, value := "2048", "4096"
	other := &Setting{Value: &was}
	for name, row := range map[string]struct {
		own         bool
		old         *Setting
		value       *string
		annotations map[string]string
		refused     bool
	}{
		"changed":                             {old: other, value: &value, refused: true},
		"changed by Longhorn":                 {old: other, value: &value, annotations: map[string]string{"longhorn.io/update-setting-from-longhorn": ""}},
		"created by Longhorn":                 {value: &value},
		"an annotation is changed":            {old: other, value: &was},
		"created in Fairlead's own group":     {own: true, value: &value, refused: true},
		"changed there":                       {own: true, old: other, value: &value, refused: true},
		"changed there, in Longhorn's name":   {own: true, old: other, value: &value, annotations: map[string]string{"longhorn.io/update-setting-from-longhorn": ""}, refused: true},
		"given a value there":                 {own: true, old: &Setting{}, value: &value, refused: true},
		"taken back there, from before":       {own: true, old: other},
		"an annotation is changed there, too": {own: true, old: other, value: &was},
	} {
		t.Run(name, func(t *testing.T) {
			facts := situation(idle)
			facts.Own = row.own
			var s Setting
			s.Metadata.Name, s.Metadata.Annotations, s.Value = string(settings.V2HugepageLimit), row.annotations, row.value
			v := ValidateSetting(s, row.old, facts)
			if is := v.Reason == ReasonReadOnly && len(v.Problems) == 1 && v.Problems[0].Error() == refused; is != row.refused || len(v.Problems) > 0 != row.refused {
				t.Errorf("got %+v", v)
			}
		})
	}
}

func TestAVersionThatDoesNotKnowASettingIsNamed(t *testing.T) {
	for name, row := range map[string]struct {
		setting, value, version string
		system, guards          bool
		want                    string
	}{
		"not yet, and Fairlead applies it": {setting: "endpoint-network-for-rwx-volume", value: "kube-system/backup-net", version: "v1.7.0",
			want: "longhorn v1.7.0 does not know endpoint-network-for-rwx-volume (since 1.11): Fairlead alone goes by it"},
		"not yet, and nobody does": {setting: "log-path", value: "/var/log/longhorn", version: "v1.9.2", want: "longhorn v1.9.2 does not know log-path (since 1.10)"},
		"not yet, and Fairlead only guards": {setting: "endpoint-network-for-rwx-volume", value: "kube-system/backup-net", version: "v1.7.0", guards: true,
			want: "longhorn v1.7.0 does not know endpoint-network-for-rwx-volume (since 1.11)"},
		"not any more":                      {setting: "v2-data-engine-cpu-mask", value: "0xf", version: "v1.10.0", want: "longhorn v1.10.0 does not know v2-data-engine-cpu-mask any more (until 1.10)"},
		"it does":                           {setting: "endpoint-network-for-rwx-volume", value: "kube-system/backup-net", version: "v1.11.0"},
		"it has it, whatever its version":   {setting: "priority-class", value: "", version: "v0.1.0"},
		"nobody knows the version":          {setting: "endpoint-network-for-rwx-volume", value: "kube-system/backup-net"},
		"a version that can't be read":      {setting: "endpoint-network-for-rwx-volume", value: "kube-system/backup-net", version: "main"},
		"in Longhorn's own group it is its": {setting: "endpoint-network-for-rwx-volume", value: "kube-system/backup-net", version: "v1.7.0", system: true},
	} {
		t.Run(name, func(t *testing.T) {
			facts := situation(idle)
			facts.Own, facts.Applies, facts.SystemValues[settings.SystemVersion] = !row.system, !row.guards, row.version
			var s Setting
			s.Metadata.Name, s.Value = row.setting, &row.value
			var got string
			for _, w := range ValidateSetting(s, nil, facts).Warnings {
				if len(w) > 10 && w[:10] == "longhorn v" {
					got = w
				}
			}
			if got != row.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
