package registration

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// NFSDrivers are the drivers of the installed entries: Fairlead's own and the GKE driver. The rules allow volumes of
// drivers that the configuration does not name. For another driver, patch the condition of-an-nfs-driver as in
// manifests/components/nfs/kustomization.yaml.
func NFSDrivers() []string { return []string{csi.DefaultDriver, volume.GKEDriver} }

// NFSEntries are the entries of NFS services. Only clusters with NFS services install them. All fail open: the controller
// and the node plugin check PersistentVolumes and NFSServices again by the same functions.
func NFSEntries(drivers []string) []Entry {
	ofDriver := condition("of-an-nfs-driver", "object.?spec.?csi.?driver.orValue('') in "+quoted(drivers...))
	return []Entry{
		{
			Path: NFSVolumeOptionsPath, Rules: rules(ofCluster(created("", "v1", "persistentvolumes"))),
			Conditions: conditions(ofDriver),
		},
		{
			Path: NFSServicesPath, Rules: rules(changed(own.Group, own.Version, "nfsservices")),
			Namespaces: notInNamespaces(Namespace, metav1.NamespaceSystem),
			Conditions: conditions(
				condition("created-changed-or-deleted", "request.operation != 'UPDATE' || object.?spec != oldObject.?spec"),
				condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
			),
		},
		{
			Path: NFSVolumesPath, Rules: rules(ofCluster(written("", "v1", "persistentvolumes"))), Timeout: mutateTimeout,
			Conditions: conditions(
				ofDriver,
				// Not for changes of binding, phase and finalizers.
				condition("created-or-mounted-otherwise", "request.operation == 'CREATE' || object.?spec.?mountOptions != oldObject.?spec.?mountOptions || object.?spec.?csi != oldObject.?spec.?csi"),
			),
		},
	}
}
