package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// NFSDrivers are the drivers whose PersistentVolumes the installed entries are
// for: Fairlead's own, and the GKE driver's, which it can serve. The rules let
// volumes of drivers pass that the configuration does not name. Where it names
// another, its name goes into the condition of-an-nfs-driver by a patch:
// manifests/components/nfs/kustomization.yaml shows one.
func NFSDrivers() []string { return []string{csi.DefaultDriver, volume.GKEDriver} }

// NFSRegistration returns what NFS services add to the webhook configurations.
// Only clusters with NFS services have it. All entries fail open: a PersistentVolume
// or an NFSService that nobody judged hangs no pod that would run otherwise, and
// the controller and the node plugin judge again by the same functions.
func NFSRegistration(drivers []string) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	mutating, validating := Registration(nil)
	mutating.Webhooks = []admissionregistrationv1.MutatingWebhook{defaultNFSVolumes(drivers)}
	validating.Webhooks = []admissionregistrationv1.ValidatingWebhook{validateNFSServices(), validateNFSVolumes(drivers)}
	return mutating, validating
}

func defaultNFSVolumes(drivers []string) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    entryNFSVolumeOptions + ".fairlead.io",
		ClientConfig:            clientConfig(nfsVolumeOptionsPath),
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
		ClientConfig:            clientConfig(nfsVolumesPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{ofCluster(written("", "v1", "persistentvolumes"))},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(mutateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			ofNFSDriver(drivers),
			// Binding, phases and finalizers are nobody's business here.
			condition("created-or-mounted-otherwise", "request.operation == 'CREATE' || object.?spec.?mountOptions != oldObject.?spec.?mountOptions || object.?spec.?csi != oldObject.?spec.?csi"),
		},
	}
}

func validateNFSServices() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         entryNFSServices + ".fairlead.io",
		ClientConfig: clientConfig(nfsServicesPath),
		Rules: []admissionregistrationv1.RuleWithOperations{on(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "nfsservices",
			admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete)},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore), // the controller judges the spec again
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
