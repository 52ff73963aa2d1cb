package registration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// validateStraySettings fails open: a stray setting is useless, and does no harm.
func validateStraySettings(profiles []storage.Profile) admissionregistrationv1.ValidatingWebhook {
	outside := []string{Namespace, metav1.NamespaceSystem}
	for _, p := range profiles {
		outside = append(outside, p.Namespace)
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    entryStraySettings + ".fairlead.io",
		ClientConfig:            clientConfig(StraySettingsPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{written("fairlead.io", "v1alpha1", "settings")},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       notInNamespaces(outside...),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(validateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("created-or-value-changed", "request.operation == 'CREATE' || object.?value != oldObject.?value"),
		},
	}
}
