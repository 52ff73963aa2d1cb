package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Act is what a person said of a machine, as Fairlead carried it out.
type Act struct {
	// Gate: attach, unfence or taint.
	Gate string `json:"gate"`
	// By is the user, and Reason the user's own words.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// At is when the user asked.
	At metav1.Time `json:"at"`
	// Of is the lastTransitionTime of the node's Ready condition then; empty without a Node.
	//
	// +optional
	Of *metav1.Time `json:"of,omitempty"`
	// Volumes that the act released.
	//
	// +optional
	Volumes int `json:"volumes,omitempty"`
	// Void says that the node had changed since the user asked, so nothing was done. The act is on record so that a file that is applied
	// again does not ask of the node's next state.
	//
	// +optional
	Void bool `json:"void,omitempty"`
}

// StorageIdentity is the node's identity as a client of one storage system.
type StorageIdentity struct {
	// Driver is the name of the CSI driver.
	Driver string `json:"driver"`
	// ClusterID of the storage cluster, as in the volumeAttributes of its volumes.
	//
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// ClientID is the client's ID in CSI-Addons.
	//
	// +optional
	ClientID string `json:"clientID,omitempty"`
	// Class is the NetworkFenceClass to fence with. Without a class, Secret and
	// ClusterID are used.
	//
	// +optional
	Class string `json:"class,omitempty"`
	// Secret with the driver's credentials for fencing.
	//
	// +optional
	Secret *SecretReference `json:"secret,omitempty"`
	// Addresses by which the storage system knows the node.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []ClientAddress `json:"addresses,omitempty"`
	// Problem says why the recorded identity can't be fenced. Empty: none.
	//
	// +optional
	Problem string `json:"problem,omitempty"`
}

// SecretReference is a Secret in a namespace.
type SecretReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// ClientAddress is one address of a storage client.
type ClientAddress struct {
	// CIDR is the address, /32 or /128.
	CIDR string `json:"cidr"`
	// Source of the address: CSIAddonsNode, Multus or Node. Records of older versions
	// may name other sources.
	Source string `json:"source"`
	// LastSeen is when the source last reported the address, accurate to a few minutes.
	LastSeen metav1.Time `json:"lastSeen"`
	// Earlier: the source now reports another address. The node may still have volumes
	// mounted over the earlier address. While the node holds volumes, both are fenced.
	//
	// +optional
	Earlier bool `json:"earlier,omitempty"`
}

// HeldVolume is a volume that processes of a boot may write to. It is known by driver and handle. What a later decision needs
// is copied when the volume is first seen, so that nothing is lost with its PersistentVolume.
type HeldVolume struct {
	// PersistentVolume is the name of its PersistentVolume; the first one that was seen, if it has several.
	PersistentVolume string `json:"persistentVolume"`
	// Driver is the name of its CSI driver.
	Driver string `json:"driver"`
	// VolumeHandle of the volume.
	VolumeHandle string `json:"volumeHandle"`
	// OtherNames are those of other PersistentVolumes with this driver and handle.
	//
	// +optional
	// +listType=atomic
	OtherNames []string `json:"otherNames,omitempty"`
	// Unknown: no PersistentVolume of the volume was ever found. Its name, cluster and modes are filled in once one is.
	//
	// +optional
	Unknown bool `json:"unknown,omitempty"`
	// ClusterID of its storage cluster.
	//
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Shared: a file system that several nodes may write to at once, by all that was seen of its PersistentVolumes.
	//
	// +optional
	Shared bool `json:"shared,omitempty"`
	// Until is the earliest end of the time for old containers on a node that came back in the same boot: the volume may have been
	// detached by force meanwhile, and its kubelet may not list it.
	//
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Released: a person said that the lost machine does not use the volume any more. That ends when the machine comes back.
	//
	// +optional
	Released bool `json:"released,omitempty"`
}

// Fence is a NetworkFence that Fairlead requested.
type Fence struct {
	// Name of the NetworkFence.
	Name   string `json:"name"`
	Driver string `json:"driver"`
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Class is the NetworkFenceClass of the NetworkFence. Without a class, Secret is used.
	//
	// +optional
	Class string `json:"class,omitempty"`
	// +optional
	Secret *SecretReference `json:"secret,omitempty"`
	// CIDRs that the NetworkFence blocks.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	CIDRs []string `json:"cidrs"`
	// State: Requested, Fenced, Unfencing, or Unfenced. Unfenced is confirmed. The
	// NetworkFence is then deleted, once no other node is fenced by its addresses.
	//
	// +kubebuilder:validation:Enum=Requested;Fenced;Unfencing;Unfenced
	State string `json:"state"`
	// VolumesReleased: volumes of the node were released because of this fence, and may
	// be in use on other nodes. The fence was confirmed once, or an operator released the
	// volumes. Without an override, only a reboot of the node ends such a fence.
	//
	// +optional
	VolumesReleased bool `json:"volumesReleased,omitempty"`
	// Since is when the fence was last requested.
	Since metav1.Time `json:"since"`
	// Failures is how often the CSI driver has failed. After each failure Fairlead
	// requests the fence again.
	//
	// +optional
	Failures int `json:"failures,omitempty"`
	// FailedUID is the UID of the NetworkFence that failed last, which Failures counts.
	//
	// +optional
	FailedUID types.UID `json:"failedUID,omitempty"`
	// VoidUID is the UID of a NetworkFence whose confirmation does not count, since a command that was given up may have undone it. It
	// is recreated.
	//
	// +optional
	VoidUID types.UID `json:"voidUID,omitempty"`
	// FailedAt is when it failed last. A command that was given up then may still run for a while.
	//
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`
	// Message of the CSI driver. Empty after a success.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// States of a Fence.
const (
	FenceRequested = "Requested"
	FenceFenced    = "Fenced"
	FenceUnfencing = "Unfencing"
	FenceUnfenced  = "Unfenced"
)
