// Package storage is the domain: networks, the Multus annotations that ask for
// them, the profiles that say how a storage system looks in a cluster, and
// shared volumes. It knows no client, no clock and no logger.
package storage

import (
	"strconv"
	"strings"
)

// Profile is how one storage system looks in a cluster.
type Profile struct {
	// Name of the profile, as in the configuration and in webhook paths.
	Name string
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

	// VolumeNetworks are the networks that volumes may request, by the configuration.
	VolumeNetworks []Network

	// StorageInterface is the interface name of a network given by storage-network.
	StorageInterface string
	// EndpointInterface is the interface name of a network given by endpoint-network-for-rwx-volume.
	EndpointInterface string
}

// Interfaces are the interface names that belong to the profile.
func (p Profile) Interfaces() []string {
	return []string{p.StorageInterface, p.EndpointInterface}
}

// OwnsClient reports whether a pod with the controller is a client. Labels alone are
// no proof, since any user may write them.
func (p Profile) OwnsClient(controller Owner) bool {
	return controller.GroupKind() == "apps/DaemonSet" && controller.Name == p.ClientDaemonSet
}

// OwnsServer reports whether the controller of a pod makes it a server of the volume.
func (p Profile) OwnsServer(controller Owner, volume string) bool {
	return controller.GroupKind() == p.ServerController && controller.Name == volume
}

// ServiceSelector is the selector of a volume's Service with a cluster IP: of the Service's labels, those
// of the storage system. Server pods lack labels that users or policies add to Services.
//
// Source: longhorn-manager v1.7.2 types/types.go, GetShareManagerInstanceLabel.
func (p Profile) ServiceSelector(labels map[string]string) map[string]string {
	selector := map[string]string{}
	for key, value := range labels {
		if _, managed := p.ManagedLabels[key]; managed || key == p.VolumeLabel {
			selector[key] = value
		}
	}
	return selector
}

// OtherNetworkLabels select the other pods that the storage system itself puts
// on the storage network.
func (p Profile) OtherNetworkLabels() []map[string]string {
	return []map[string]string{p.InstanceManagerLabels, p.BackingImageManagerLabels}
}

// Annotations and labels of Fairlead on objects of others.
const (
	// OptOutAnnotation set to "true" on a pod, pod template or Service keeps Fairlead's mutators off it.
	OptOutAnnotation = "fairlead.io/opt-out"
	// StrategyAnnotation on the client DaemonSet keeps its update strategy, as
	// JSON, while Fairlead restarts the pods itself, node by node.
	StrategyAnnotation = "fairlead.io/update-strategy"
	// NetworkAnnotation on a Service records the network of its volume, as
	// Attachment.String writes it. It is set once, when the Service is created.
	NetworkAnnotation = "fairlead.io/network"
	// AddressesAnnotation and MACAnnotation on a Service record, with the network,
	// what is fixed for the volume's server there.
	AddressesAnnotation = "fairlead.io/addresses"
	MACAnnotation       = "fairlead.io/mac"
	// SelectorAnnotation on a headless Service keeps the selector that it was
	// created with, as JSON, for the day that it becomes a ClusterIP Service again.
	SelectorAnnotation = "fairlead.io/selector"
	// RestartsAnnotation set to RestartsPaused on a NetworkRollout: no workload pod
	// is restarted until the annotation is removed.
	RestartsAnnotation = "fairlead.io/workload-restarts"
	RestartsPaused     = "paused"
	// NamespaceAnnotation on a client pod keeps the network namespace that it was
	// last seen with, as NetworkNamespace.String writes it.
	NamespaceAnnotation = "fairlead.io/network-namespace"
)

// VersionDuties says which duties suit a range of versions of a storage system, and why.
// docs/reference/duties.md shows the same table.
type VersionDuties struct {
	// From is the first minor version of the range, Before the first version after the
	// range. Empty: the range has no such end.
	From, Before string
	// Does describes the storage system's own behaviour: sentences that begin with its
	// name, and have no full stop at the end.
	Does string
	// Duties are the switches to set, by duty, as the configuration names them.
	Duties map[string]string
}

// Duties of the configuration that depend on the version.
const (
	DutySettings  = "settings"
	DutyPods      = "pods"
	DutyServices  = "services"
	DutyEndpoints = "endpoints"
	DutyWorkloads = "workloads"
	DutyRemount   = "remount"
)

// DutiesFor finds the range of a version (v1.7.0, 1.11.1-rc2); ok is false for an unreadable version.
func DutiesFor(table []VersionDuties, version string) (VersionDuties, bool) {
	minor, ok := minorOf(version)
	if !ok {
		return VersionDuties{}, false
	}
	for _, row := range table {
		from, hasFrom := minorOf(row.From)
		before, hasBefore := minorOf(row.Before)
		if (!hasFrom || minor >= from) && (!hasBefore || minor < before) {
			return row, true
		}
	}
	return VersionDuties{}, false
}

// minorOf makes a comparable number of the major and minor version.
func minorOf(version string) (int, bool) {
	parts := strings.SplitN(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".", 3)
	if len(parts) < 2 {
		return 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, false
	}
	digits := strings.IndexFunc(parts[1]+"x", func(r rune) bool { return r < '0' || r > '9' })
	minor, err := strconv.Atoi(parts[1][:digits])
	if err != nil || major < 0 || minor > 999 {
		return 0, false
	}
	return major*1000 + minor, true
}
