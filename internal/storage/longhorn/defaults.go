package longhorn

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// DefaultSettings is the ConfigMap in Longhorn's namespace with the settings that the chart or the user has given, and
// DefaultSettingsKey its key.
//
// At each start, longhorn-manager writes these values into the Settings that differ (v1.7.2 datastore/longhorn.go,
// UpdateCustomizedSettings; v1.12.0 the same).
const (
	DefaultSettings    = "longhorn-default-setting"
	DefaultSettingsKey = "default-setting.yaml"
)

// ParseDefaultSettings reads the values of the ConfigMap, by name of the setting. Longhorn ignores all of them if the text
// is malformed, and so nothing is returned then.
func ParseDefaultSettings(text string) map[string]string {
	var values map[string]any
	number := func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }
	if err := yaml.Unmarshal([]byte(text), &values, number); err != nil {
		return nil
	}
	defaults := make(map[string]string, len(values))
	for name, value := range values {
		switch v := value.(type) {
		case nil:
			defaults[name] = ""
		case string:
			defaults[name] = strings.Trim(v, " ")
		case bool, json.Number:
			defaults[name] = fmt.Sprint(v)
		default: // a list or an object is no value of a setting
			return nil
		}
	}
	return defaults
}
