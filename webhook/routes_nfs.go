package webhook

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// NFSDrivers are the drivers of the installed entries: Fairlead's own and the GKE driver. The rules allow volumes of
// drivers that the configuration does not name. For another driver, patch the condition of-an-nfs-driver as in
// manifests/components/nfs/kustomization.yaml.
func NFSDrivers() []string { return []string{csi.DefaultDriver, volume.GKEDriver} }

// nfsRoutes are the rows of NFS services. Only clusters with NFS services install them. All fail open: the controller
// and the node plugin check PersistentVolumes and NFSServices again by the same functions.
func nfsRoutes(drivers []string) []Route {
	ofDriver := registration.Condition("of-an-nfs-driver", "object.?spec.?csi.?driver.orValue('') in "+registration.Quoted(drivers...))
	return []Route{
		{
			Part: PartNFS, For: "PersistentVolume create of the NFS drivers, by name: adds the NFSService's mount options if it has none", Down: "mounted with the kernel's defaults",
			Entry: registration.Entry{
				Path: registration.NFSVolumeOptionsPath, Rules: registration.Rules(registration.OfCluster(registration.Created("", "v1", "persistentvolumes"))),
				Conditions: registration.Conditions(ofDriver),
			},
			Cluster: readNFSServices(),
			rule:    func(s served) named { return when(s.servesNFS(), s.nfs.volumeOptions()) },
		},
		{
			Part: PartNFS, For: "NFSService, when created, when its spec changes, or when it is deleted", Down: "the controller reports the same problems, and keeps a deleted service while nodes have it mounted",
			Entry: registration.Entry{
				Path: registration.NFSServicesPath, Rules: registration.Rules(registration.Changed(own.Group, own.Version, "nfsservices")),
				Namespaces: registration.NotInNamespaces(registration.Namespace, metav1.NamespaceSystem),
				Conditions: registration.Conditions(
					registration.Condition("created-changed-or-deleted", "request.operation != 'UPDATE' || object.?spec != oldObject.?spec"),
					registration.Condition("not-the-clean-up-of-kubernetes", "!(request.operation == 'DELETE' && "+cleanUp+")"),
				),
			},
			Cluster: readNFSUses(),
			rule:    func(s served) named { return when(s.servesNFS(), s.nfs.services()) },
		},
		{
			Part: PartNFS, For: "PersistentVolume of the NFS drivers, by name, when created or when mount options or attributes change", Down: "pods that use it wait, and their events name the problem",
			Entry: registration.Entry{
				Path: registration.NFSVolumesPath, Rules: registration.Rules(registration.OfCluster(registration.Written("", "v1", "persistentvolumes"))), Timeout: registration.MutateTimeout,
				Conditions: registration.Conditions(
					ofDriver,
					// Not for changes of binding, phase and finalizers.
					registration.Condition("created-or-mounted-otherwise", "request.operation == 'CREATE' || object.?spec.?mountOptions != oldObject.?spec.?mountOptions || object.?spec.?csi != oldObject.?spec.?csi"),
				),
			},
			Cluster: readNFSServices(),
			rule:    func(s served) named { return when(s.servesNFS(), s.nfs.volumes()) },
		},
	}
}
