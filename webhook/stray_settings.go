package webhook

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/validators"
)

// straySettings judges settings of Fairlead's own group outside the namespaces of
// all profiles. The namespaces are those of the configuration, which the selector
// of the installed webhook may not name.
func straySettings(profiles []Profile) rule[validators.Setting] {
	var served []storage.Profile
	for _, p := range profiles {
		served = append(served, p.Profile)
	}
	return rule[validators.Setting]{
		name:  entryStraySettings,
		kinds: settingKinds[1:],
		decide: func(_ context.Context, r *Request[validators.Setting]) (Decision, error) {
			resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
			return fromVerdict(validators.ValidateSettingNamespace(r.Object.Metadata.Name, r.Namespace, served), resource, r.Name), nil
		},
	}
}

// validateStraySettings fails open: a stray setting is useless, and does no harm.
func validateStraySettings(profiles []storage.Profile) admissionregistrationv1.ValidatingWebhook {
	outside := []string{Namespace, metav1.NamespaceSystem}
	for _, p := range profiles {
		outside = append(outside, p.Namespace)
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    entryStraySettings + ".fairlead.io",
		ClientConfig:            clientConfig(straySettingsPath),
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
