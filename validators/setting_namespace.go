package validators

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// ValidateSettingNamespace refuses a setting of Fairlead's own group in a namespace from which no profile reads settings.
// Without the rule, the value would be stored and never take effect.
//
// Objects: settings.fairlead.io outside the namespaces of all profiles, created or with another value. Deletions and
// changes of labels are not sent.
func ValidateSettingNamespace(name, namespace string, profiles []longhorn.Names) Verdict {
	if slices.ContainsFunc(profiles, func(p longhorn.Names) bool { return p.Namespace == namespace }) {
		return Verdict{Reason: ReasonValid}
	}
	var served []string
	for _, p := range profiles {
		served = append(served, fmt.Sprintf("%q (%s)", p.Namespace, p.Name))
	}
	return refusal(ReasonNamespace, field.Invalid(field.NewPath("metadata", "namespace"), namespace,
		fmt.Sprintf("Fairlead reads no settings from namespace %q, so the value would never take effect: set %s in namespace %s",
			namespace, name, strings.Join(served, " or "))))
}
