package validators

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateSettingNamespace refuses a setting of Fairlead's own group outside Longhorn's namespace. Without the rule, the value
// would be stored and never take effect.
//
// Objects: settings.fairlead.io outside Longhorn's namespace, created or with another value. Deletions and changes of labels
// are not sent.
func ValidateSettingNamespace(name, namespace, served string) Verdict {
	if namespace == served {
		return Verdict{Reason: ReasonValid}
	}
	return refusal(ReasonNamespace, field.Invalid(field.NewPath("metadata", "namespace"), namespace,
		fmt.Sprintf("Fairlead reads no settings from namespace %q, so the value would never take effect: set %s in namespace %q",
			namespace, name, served)))
}
