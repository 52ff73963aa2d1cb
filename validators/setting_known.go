package validators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// byLonghorn is the annotation that longhorn-manager writes its settings with:
// its own webhook lets it change read-only ones by that. Source: longhorn-manager
// datastore/longhorn.go, UpdateSetting; webhook/resources/setting/validator.go.
const byLonghorn = "longhorn.io/update-setting-from-longhorn"

// readOnly tells whether a change of a setting of the catalog is one that nobody
// may make but the storage system. That creates it in its own group, and does not
// start if it can't; and a value of Fairlead's own group may be taken back.
func readOnly(s Setting, old *Setting, facts SettingFacts) bool {
	switch {
	case !settings.ReadOnly(s.Metadata.Name), s.Value == nil:
		return false
	case old != nil && old.Value != nil && *old.Value == *s.Value:
		return false // an annotation was changed
	case facts.Own:
		return true
	}
	_, itself := s.Metadata.Annotations[byLonghorn]
	return old != nil && !itself
}

func refuseReadOnly(s Setting, facts SettingFacts) Verdict {
	return Verdict{Reason: ReasonReadOnly, Problems: field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"),
		fmt.Sprintf("setting %s is read-only: %s writes it by itself", s.Metadata.Name, facts.Profile.Name))}}
}

// warnUnknown tells of a value that the storage system's version has no setting for.
func (v *Verdict) warnUnknown(d settings.Definition, facts SettingFacts) {
	version := facts.SystemValues[settings.SystemVersion]
	if _, has := facts.SystemValues[d.Name]; has || !facts.Own {
		return // it knows better
	}
	alone := ""
	if facts.unheeded(d) == "" && facts.Applies {
		alone = ": Fairlead alone goes by it"
	}
	if early, known := storage.VersionBefore(version, d.Since); known && early {
		v.warn("%s %s does not know %s (since %s)%s", facts.Profile.Name, version, d.Name, d.Since, alone)
	}
	if stillKnown, known := storage.VersionBefore(version, d.Until); known && !stillKnown {
		v.warn("%s %s does not know %s any more (until %s)%s", facts.Profile.Name, version, d.Name, d.Until, alone)
	}
}
