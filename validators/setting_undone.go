package validators

import "github.com/fairlead-io/fairlead/internal/settings/catalog"

// warnUndone warns of a value that longhorn-manager's next start overwrites with the value of its ConfigMap.
//
// Source: longhorn-manager v1.7.2 datastore/longhorn.go, UpdateCustomizedSettings.
func (v *Verdict) warnUndone(d catalog.Definition, value string, facts SettingFacts) {
	given, isGiven := facts.Defaults[string(d.Name)]
	switch {
	case len(v.Problems) > 0 || facts.Own || !isGiven || d.Same(given, value):
	case given == "" && d.Default != "": // Longhorn keeps the value of a setting that can't be empty
	default:
		v.warn("the next start of %s sets %s to %q again: ConfigMap %s in namespace %s has this value. Change it there too (Helm: defaultSettings)",
			facts.Profile.Name+"-manager", d.Name, given, facts.Profile.DefaultSettings, facts.Profile.Namespace)
	}
}
