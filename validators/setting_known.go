package validators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// byLonghorn is the annotation that longhorn-manager writes its settings with:
// its own webhook lets it change read-only ones by that. Source: longhorn-manager
// datastore/longhorn.go, UpdateSetting; webhook/resources/setting/validator.go.
const byLonghorn = "longhorn.io/update-setting-from-longhorn"

// checkReadOnly refuses a change that only the storage system may make. It creates
// such a setting as it starts, and does not start if it can't.
func (v *Verdict) checkReadOnly(d catalog.Definition, s Setting, old *Setting, facts SettingFacts) {
	if facts.Own || !d.ReadOnly || old == nil || old.Value != nil && *old.Value == *s.Value {
		return
	}
	if _, itself := s.Metadata.Annotations[byLonghorn]; itself {
		return
	}
	v.refuse(ReasonReadOnly, field.Forbidden(field.NewPath("metadata", "name"),
		fmt.Sprintf("setting %s is read-only: %s writes it by itself", d.Name, facts.Profile.Name)))
}
