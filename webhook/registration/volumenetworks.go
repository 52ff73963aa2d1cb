package registration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/validators"
)

// validateVolumeNetworks is for claims too, which are in every namespace and must not wait. So it fails open, and the API
// server calls it only if an annotation of Fairlead's changes.
func validateVolumeNetworks() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         entryVolumeNetworks + ".fairlead.io",
		ClientConfig: clientConfig(VolumeNetworksPath),
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

// annotationChanged, in CEL: an annotation with Fairlead's prefix is added, changed or removed. Misspelled annotations
// count: they cause warnings.
const annotationChanged = "object.metadata.?annotations.orValue({}).exists(a, a.startsWith('" + validators.AnnotationPrefix + "') && " +
	"(request.operation != 'UPDATE' || object.metadata.?annotations[?a] != oldObject.metadata.?annotations[?a])) || " +
	"request.operation == 'UPDATE' && oldObject.metadata.?annotations.orValue({}).exists(a, a.startsWith('" + validators.AnnotationPrefix + "') && " +
	"!object.metadata.?annotations[?a].hasValue())"

// ofCluster is for kinds that have no namespace.
func ofCluster(rule admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	rule.Scope = ptr.To(admissionregistrationv1.ClusterScope)
	return rule
}
