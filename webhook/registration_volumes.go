package webhook

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/storage"
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
			condition("asks-anew", volumeAnnotations()+".exists(a, request.operation == 'UPDATE' ? "+
				"object.metadata.?annotations[?a] != oldObject.metadata.?annotations[?a] : object.metadata.?annotations[?a].hasValue())"),
		},
	}
}

// volumeAnnotations lists in CEL what asks for a network for one volume.
func volumeAnnotations() string {
	var keys []string
	for _, key := range storage.VolumeAnnotations() {
		keys = append(keys, fmt.Sprintf("'%s'", key))
	}
	return "[" + strings.Join(keys, ", ") + "]"
}

// ofCluster is for kinds that have no namespace.
func ofCluster(rule admissionregistrationv1.RuleWithOperations) admissionregistrationv1.RuleWithOperations {
	rule.Scope = ptr.To(admissionregistrationv1.ClusterScope)
	return rule
}
