package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeFence is the record of one machine: the addresses of its storage clients,
// the volumes that it holds, and the progress of fencing after the machine is lost.
// The record has the name of the machine's node. The record of a second machine of
// that name is named after the node and a hash. The controller owns the record,
// which outlives the node. Users read it; an annotation on it overrides a gate.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nf,categories=fairlead
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.status.addresses`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.addressSources`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumeCount`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
type NodeFence struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status NodeFenceStatus `json:"status,omitempty"`
}

// NodeFencePhase is how far a node is from healthy.
type NodeFencePhase string

// Phases, in the order of an incident.
const (
	// NodeHealthy: the node is Ready, and its ledger is kept.
	NodeHealthy NodeFencePhase = "Healthy"
	// NodeLost: the node is not Ready. Its ledger is frozen and its volumes are held.
	// Fencing was not requested.
	NodeLost NodeFencePhase = "Lost"
	// NodeFencing: fencing has begun, and some identities are not fenced yet.
	NodeFencing NodeFencePhase = "Fencing"
	// NodeFenced: the storage systems refuse writes from the node.
	NodeFenced NodeFencePhase = "Fenced"
	// NodeDrained: the node is fenced, and has no pods or attachments left.
	NodeDrained NodeFencePhase = "Drained"
	// NodeReturned: the node has rebooted and is Ready, but is still fenced.
	NodeReturned NodeFencePhase = "Returned"
	// NodeUnfencing: Fairlead is asking the storage systems to unfence the node.
	NodeUnfencing NodeFencePhase = "Unfencing"
)

// NodeFenceStatus is the ledger of a node and the state of its incident.
type NodeFenceStatus struct {
	// +optional
	// +kubebuilder:validation:Enum=Healthy;Lost;Fencing;Fenced;Drained;Returned;Unfencing
	Phase NodeFencePhase `json:"phase,omitempty"`
	// Reason of the phase or of a refusal, in one word.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says what Fairlead is doing, is waiting for or refuses, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// LastError is why the API server refused Fairlead's last action for the node: a change
	// of a NetworkFence, or the removal of the taint. Empty once nothing is left to do.
	//
	// +optional
	LastError string `json:"lastError,omitempty"`
	// NodeName is the node name of the machine. Default: the name of the NodeFence.
	//
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Node identifies the machine, and the boot in which the ledger was recorded. UID
	// "unknown" is a machine that had the name while Fairlead was not running.
	//
	// +optional
	Node MachineIdentity `json:"node,omitzero"`
	// Gone: the machine has no Node object. The object was deleted, or another machine
	// has the name.
	//
	// +optional
	Gone bool `json:"gone,omitempty"`
	// Released: an operator released the volumes of this boot by gate attach. If the node is Ready again, its old mounts may
	// write beside others. Ends with a reboot, or five minutes after the node became Ready without the out-of-service taint.
	//
	// +optional
	Released bool `json:"released,omitempty"`
	// Ordinal orders several machines of one name: the later machine has the higher number.
	//
	// +optional
	Ordinal int `json:"ordinal,omitempty"`
	// LastHealthy is when the node was last seen Ready, accurate to a few minutes.
	//
	// +optional
	LastHealthy *metav1.Time `json:"lastHealthy,omitempty"`
	// ReadySince is when Fairlead saw the node become Ready, by Fairlead's own clock.
	//
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`
	// ReadyChanged is the lastTransitionTime of the node's Ready condition at
	// ReadySince. Another value on the node shows that the node was not Ready meanwhile.
	// The time is from another clock, so it is only compared for equality.
	//
	// +optional
	ReadyChanged *metav1.Time `json:"readyChanged,omitempty"`
	// LostSince is when the node was first seen not Ready, or gone.
	//
	// +optional
	LostSince *metav1.Time `json:"lostSince,omitempty"`
	// Incident is the ID of this loss of the node. Objects created for the incident
	// carry the ID.
	//
	// +optional
	Incident string `json:"incident,omitempty"`
	// Addresses of all identities, in readable form.
	//
	// +optional
	Addresses string `json:"addresses,omitempty"`
	// AddressSources are the sources of Addresses, in readable form.
	//
	// +optional
	AddressSources string `json:"addressSources,omitempty"`
	// Identities of the node's storage clients: the ledger.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Identities []StorageIdentity `json:"identities,omitempty"`
	// Volumes that the node holds. A volume leaves the list when the node releases it,
	// or when the node returns after fencing.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Volumes []HeldVolume `json:"volumes,omitempty"`
	// VolumeCount is the number of Volumes.
	//
	// +optional
	VolumeCount int `json:"volumeCount"`
	// Fences that Fairlead requested, one for each identity.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Fences []Fence `json:"fences,omitempty"`
	// Ended lists the latest incidents whose fences were all removed in this boot. A
	// fence for one of them, if created later, would block a working node.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Ended []string `json:"ended,omitempty"`
	// Tainted is when Fairlead set the node's out-of-service taint. Absent: Fairlead did not.
	//
	// +optional
	Tainted *metav1.Time `json:"tainted,omitempty"`
}

// MachineIdentity distinguishes machines of one name, and boots of one machine.
type MachineIdentity struct {
	// UID of the Node object.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// BootID is node.status.nodeInfo.bootID, which changes with each boot.
	//
	// +optional
	BootID string `json:"bootID,omitempty"`
	// SystemUUID is node.status.nodeInfo.systemUUID, which differs between machines.
	//
	// +optional
	SystemUUID string `json:"systemUUID,omitempty"`
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

// HeldVolume is a volume that may be written to from the node.
type HeldVolume struct {
	// PersistentVolume is the name of the PersistentVolume.
	PersistentVolume string `json:"persistentVolume"`
	// Driver is the name of its CSI driver.
	Driver string `json:"driver"`
	// VolumeHandle of the volume, which another PersistentVolume may have too.
	//
	// +optional
	VolumeHandle string `json:"volumeHandle,omitempty"`
	// ClusterID of its storage cluster.
	//
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Waiting: the kubelet reports that it will use the volume, which is not attached
	// to the node yet.
	//
	// +optional
	Waiting bool `json:"waiting,omitempty"`
	// Detached: Kubernetes has force-detached the volume, but the node works and its
	// kubelet reports the volume as in use. Pods on the node may write to the volume.
	//
	// +optional
	Detached bool `json:"detached,omitempty"`
	// Until ends the grace period of a volume that the node no longer reports. The
	// volume was force-detached while the node was lost, and the node returned without
	// rebooting. Old containers have until then to end.
	//
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Shared: several nodes may write to the volume at once.
	//
	// +optional
	Shared bool `json:"shared,omitempty"`
	// Block: the volume's mode is Block. A shared block volume is attached to two nodes
	// while a virtual machine migrates. A lost node holds it like an exclusive volume.
	//
	// +optional
	Block bool `json:"block,omitempty"`
}

// Fence is a NetworkFence that Fairlead requested.
type Fence struct {
	// Name of the NetworkFence.
	Name string `json:"name"`
	// Incident that the NetworkFence belongs to.
	Incident string `json:"incident"`
	Driver   string `json:"driver"`
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

// NodeFenceList is a list of NodeFences.
//
// +kubebuilder:object:root=true
type NodeFenceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeFence `json:"items"`
}
