package validators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// checkReadOnly refuses a change that only the storage system may make. Creation is allowed: the storage system creates
// the setting when it starts, and does not start if it can't.
func (v *Verdict) checkReadOnly(d catalog.Definition, s Setting, old *Setting, facts SettingFacts) {
	if facts.Own || !d.ReadOnly || old == nil || old.Value != nil && *old.Value == *s.Value {
		return
	}
	if _, allowed := s.Metadata.Annotations[longhorn.OwnUpdateAnnotation]; allowed {
		return
	}
	v.refuse(ReasonReadOnly, field.Forbidden(field.NewPath("metadata", "name"),
		fmt.Sprintf("setting %s is read-only: only %s writes its value", d.Name, facts.Profile.Name)))
}
