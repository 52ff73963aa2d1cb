package registration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// NFSDrivers are the drivers of the installed entries: Fairlead's own and the GKE driver. The rules allow volumes of
// drivers that the configuration does not name. For another driver, patch the condition of-an-nfs-driver as in
// manifests/components/nfs/kustomization.yaml.
func NFSDrivers() []string { return []string{csi.DefaultDriver, volume.GKEDriver} }

// NFS has the entries of NFS services. Only clusters with NFS services install them. All fail open: the controller and
// the node plugin check PersistentVolumes and NFSServices again by the same functions.
func NFS(drivers []string) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	mutating, validating := Webhooks(nil)
	mutating.Webhooks = []admissionregistrationv1.MutatingWebhook{defaultNFSVolumes(drivers)}
	validating.Webhooks = []admissionregistrationv1.ValidatingWebhook{validateNFSServices(), validateNFSVolumes(drivers)}
	return mutating, validating
}

func defaultNFSVolumes(drivers []string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    entryNFSVolumeOptions + ".fairlead.io",
		ClientConfig:            clientConfig(NFSVolumeOptionsPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{ofCluster(created("", "v1", "persistentvolumes"))},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(mutateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions:         []admissionregistrationv1.MatchCondition{ofNFSDriver(drivers)},
	}
}

func validateNFSVolumes(drivers []string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    entryNFSVolumes + ".fairlead.io",
		ClientConfig:            clientConfig(NFSVolumesPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{ofCluster(written("", "v1", "persistentvolumes"))},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(mutateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			ofNFSDriver(drivers),
			// Not for changes of binding, phase and finalizers.
			condition("created-or-mounted-otherwise", "request.operation == 'CREATE' || object.?spec.?mountOptions != oldObject.?spec.?mountOptions || object.?spec.?csi != oldObject.?spec.?csi"),
		},
	}
}

func validateNFSServices() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         entryNFSServices + ".fairlead.io",
		ClientConfig: clientConfig(NFSServicesPath),
		Rules: []admissionregistrationv1.RuleWithOperations{on(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "nfsservices",
			admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore), // the controller checks the spec again
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       notInNamespaces(Namespace, metav1.NamespaceSystem),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(validateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("created-changed-or-deleted", "request.operation != 'UPDATE' || object.?spec != oldObject.?spec"),
			condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
		},
	}
}

func ofNFSDriver(drivers []string) admissionregistrationv1.MatchCondition {
	return condition("of-an-nfs-driver", "object.?spec.?csi.?driver.orValue('') in "+quoted(drivers...))
}
