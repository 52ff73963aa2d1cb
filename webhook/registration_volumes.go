package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/validators"
)

// validateVolumeNetworks sees claims, which are in every namespace and which
// nothing may hold up: so it fails open, and only the API server's own look at
// the annotations decides whether Fairlead hears of one at all.
func validateVolumeNetworks() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         entryVolumeNetworks + ".fairlead.io",
		ClientConfig: clientConfig(volumeNetworksPath),
		Rules: []admissionregistrationv1.RuleWithOperations{
			written("", "v1", "persistentvolumeclaims"),
			ofCluster(written("", "v1", "persistentvolumes")),
			ofCluster(written("storage.k8s.io", "v1", "storageclasses")),
		},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       notInNamespaces(Namespace, metav1.NamespaceSystem),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(validateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("annotation-of-fairlead-changed", annotationChanged),
		},
	}
}

// annotationChanged, in CEL: an annotation with Fairlead's prefix is new, has
// another value or is gone. Misspelled ones count, so that they can be warned of.
const annotationChanged = "object.metadata.?annotations.orValue({}).exists(a, a.startsWith('" + validators.AnnotationPrefix + "') && " +
	"(request.operation != 'UPDATE' || object.metadata.?annotations[?a] != oldObject.metadata.?annotations[?a])) || " +
	"request.operation == 'UPDATE' && oldObject.metadata.?annotations.orValue({}).exists(a, a.startsWith('" + validators.AnnotationPrefix + "') && " +
	"!object.metadata.?annotations[?a].hasValue())"

// ofCluster is for kinds that have no namespace.
func ofCluster(rule admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	rule.Scope = ptr.To(admissionregistrationv1.ClusterScope)
	return rule
}
