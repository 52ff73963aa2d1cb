package longhorn

import (
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// Name of Longhorn: in the paths of webhooks, as the source of values, and as the name of the NetworkRollout.
const Name = "longhorn"

// Names are how Longhorn looks in a cluster.
//
// +kubebuilder:object:generate=false
type Names struct {
	// Driver is the name of the CSI driver.
	Driver string
	// Namespace that the storage system runs in.
	Namespace string
	// ServiceAccount of the storage system, in Namespace.
	ServiceAccount string

	// ServerLabels select the pods that serve shared volumes.
	ServerLabels map[string]string
	// ServerController is the kind, <group>/<Kind>, of the controller that owns
	// such a pod. The controller has the name of the volume.
	ServerController string
	// ClientLabels select the pods that mount shared volumes on nodes.
	ClientLabels map[string]string
	// ClientDaemonSet is the name of the DaemonSet that owns the client pods.
	ClientDaemonSet string
	// MountsFromHost: while the settings choose no network for shared volumes,
	// clients mount in the host's network namespace, whatever networks their pods have.
	MountsFromHost bool
	// VolumeLabel is the label, on server pods and Services, that names the volume.
	VolumeLabel string
	// InstanceManagerLabels select the pods that run engines and replicas, and
	// BackingImageManagerLabels those that handle files of backing images.
	InstanceManagerLabels, BackingImageManagerLabels map[string]string
	// EngineLabel is the label, on instance-manager pods, that names the data engine.
	EngineLabel string
	// ManagedLabels select the Deployments and DaemonSets that the storage system
	// creates. ClientDaemonSet is one of them also without the labels.
	ManagedLabels map[string]string
	// TolerationsAnnotation, on all of these, keeps as JSON the tolerations that
	// come from a setting.
	TolerationsAnnotation string
	// DisableV2Label set to "true" on a node: no instance manager of the v2 data engine.
	DisableV2Label string

	// DefaultSettings is the ConfigMap with the values that the storage system writes into its settings at each start.
	DefaultSettings string

	// Versions of the storage system, and what to leave to each.
	Versions []VersionDuties

	// VolumeNetworks are the networks and addresses that volumes may request, by the configuration.
	VolumeNetworks rwx.Permitted

	// StorageInterface is the interface name of a network given by storage-network.
	StorageInterface string
	// EndpointInterface is the interface name of a network given by endpoint-network-for-rwx-volume.
	EndpointInterface string
}

// Interfaces are the interface names that belong to Longhorn.
func (n Names) Interfaces() []string {
	return []string{n.StorageInterface, n.EndpointInterface}
}

// OwnsClient reports whether a pod with the controller is a client. Labels alone are
// no proof, since any user may write them.
func (n Names) OwnsClient(controller rwx.Owner) bool {
	return controller.GroupKind() == "apps/DaemonSet" && controller.Name == n.ClientDaemonSet
}

// OwnsServer reports whether the controller of a pod makes it a server of the volume.
func (n Names) OwnsServer(controller rwx.Owner, volume string) bool {
	return controller.GroupKind() == n.ServerController && controller.Name == volume
}

// ServiceSelector is the selector of a volume's Service with a cluster IP: of the Service's labels, those
// of the storage system. Server pods lack labels that users or policies add to Services.
//
// Source: longhorn-manager v1.7.2 types/types.go, GetShareManagerInstanceLabel.
func (n Names) ServiceSelector(labels map[string]string) map[string]string {
	selector := map[string]string{}
	for key, value := range labels {
		if _, managed := n.ManagedLabels[key]; managed || key == n.VolumeLabel {
			selector[key] = value
		}
	}
	return selector
}

// OtherNetworkLabels select the other pods that the storage system itself puts
// on the storage network.
func (n Names) OtherNetworkLabels() []map[string]string {
	return []map[string]string{n.InstanceManagerLabels, n.BackingImageManagerLabels}
}
