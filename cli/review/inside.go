package review

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// configurationIn checks the configuration in a ConfigMap of Fairlead. With errors in it, no process of Fairlead starts.
func configurationIn(o *unstructured.Unstructured) (is bool, err error) {
	if o.GetKind() != "ConfigMap" || o.GetAPIVersion() != "v1" || o.GetNamespace() != registration.Namespace {
		return false, nil
	}
	text, has, _ := unstructured.NestedString(o.Object, "data", cli.ConfigurationKey)
	switch {
	case !has && o.GetName() == cli.ConfigurationMap:
		return true, fmt.Errorf("has no key %s, which Fairlead reads", cli.ConfigurationKey)
	case !has:
		return false, nil
	}
	if _, err = config.Parse([]byte(text)); err != nil {
		err = fmt.Errorf("%s, with which no process of Fairlead starts: %w", cli.ConfigurationKey, err)
	}
	return true, err
}

// withDefaultSettings has the settings that longhorn-manager sets when it starts in place of its ConfigMap
// longhorn-default-setting, the chart's defaultSettings.
func withDefaultSettings(manifests []manifest) []manifest {
	var all []manifest
	for _, m := range manifests {
		if m.GetKind() != "ConfigMap" || m.GetAPIVersion() != "v1" || m.GetName() != longhorn.DefaultSettings {
			all = append(all, m)
			continue
		}
		text, _, _ := unstructured.NestedString(m.Object, "data", longhorn.DefaultSettingsKey)
		values := longhorn.ParseDefaultSettings(text)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if values[name] == "" { // of a required setting, longhorn-manager ignores it (v1.8.1, datastore/longhorn.go)
				continue
			}
			setting := &unstructured.Unstructured{Object: map[string]any{"value": values[name]}}
			setting.SetGroupVersionKind(longhorn.GroupVersion.WithKind("Setting"))
			setting.SetNamespace(m.GetNamespace())
			setting.SetName(name)
			all = append(all, manifest{Unstructured: setting, file: m.file, line: m.line, inside: m.GetName()})
		}
	}
	return all
}
