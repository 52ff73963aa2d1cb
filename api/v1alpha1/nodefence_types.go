package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeFence is what Fairlead knows of one machine: the addresses
// by which its storage clients are known, kept while its node is healthy; the
// volumes that it holds; and, when it is lost, how far fencing it is. It has the
// name of the machine's node; a second machine of that name has a record of its own, named after the node and a hash. The
// controller owns it, and it outlives the node. Users read it; a gate is
// overridden by an annotation on it.
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
	// NodeLost: the node is not Ready. Its ledger stays as it was and its volumes
	// are held; nobody has said that it is to be fenced.
	NodeLost NodeFencePhase = "Lost"
	// NodeFencing: the node is to be fenced, and not every identity is yet.
	NodeFencing NodeFencePhase = "Fencing"
	// NodeFenced: the storage systems refuse what the node writes.
	NodeFenced NodeFencePhase = "Fenced"
	// NodeDrained: fenced, and neither pods nor attachments are left on it.
	NodeDrained NodeFencePhase = "Drained"
	// NodeReturned: the node has booted anew, and is Ready, and is still fenced.
	NodeReturned NodeFencePhase = "Returned"
	// NodeUnfencing: the storage systems are told to let the node in again.
	NodeUnfencing NodeFencePhase = "Unfencing"
)

// NodeFenceStatus is the ledger of a node and the state of its incident.
type NodeFenceStatus struct {
	// +optional
	// +kubebuilder:validation:Enum=Healthy;Lost;Fencing;Fenced;Drained;Returned;Unfencing
	Phase NodeFencePhase `json:"phase,omitempty"`
	// Reason of the phase in one word, and of what is refused.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says what is done, what is waited for or why something is refused, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// NodeName is the name that the machine has or had. Without it, the name is that of the NodeFence.
	//
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// Node tells which machine it is, and which boot of it the ledger was recorded of. UID "unknown" is a
	// machine that had the name while Fairlead did not look.
	//
	// +optional
	Node MachineIdentity `json:"node,omitzero"`
	// Gone: no Node object is of this machine any more. It was deleted, or another machine has the name.
	//
	// +optional
	Gone bool `json:"gone,omitempty"`
	// RunsAs is the node that the machine is now, if it has rebooted and come back under another name. Nothing that it
	// held is mounted any more.
	//
	// +optional
	RunsAs string `json:"runsAs,omitempty"`
	// Ordinal tells which of several machines had the name later: the higher one.
	//
	// +optional
	Ordinal int `json:"ordinal,omitempty"`
	// LastHealthy is when the node was last seen Ready, to some minutes.
	//
	// +optional
	LastHealthy *metav1.Time `json:"lastHealthy,omitempty"`
	// ReadySince is when Fairlead first saw the node Ready as it is now, by Fairlead's own clock.
	//
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`
	// ReadyChanged is the time that the node's Ready condition had then. It is of another clock, so it is only
	// compared: another value says that the node was not Ready meanwhile.
	//
	// +optional
	ReadyChanged *metav1.Time `json:"readyChanged,omitempty"`
	// LostSince is when the node was first seen not Ready, or gone.
	//
	// +optional
	LostSince *metav1.Time `json:"lostSince,omitempty"`
	// Incident names this loss of the node; what is made for it carries the name.
	//
	// +optional
	Incident string `json:"incident,omitempty"`
	// Addresses of all identities, for people to read.
	//
	// +optional
	Addresses string `json:"addresses,omitempty"`
	// AddressSources are where these addresses come from, for people to read.
	//
	// +optional
	AddressSources string `json:"addressSources,omitempty"`
	// Identities that the node's storage clients have: the ledger.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Identities []StorageIdentity `json:"identities,omitempty"`
	// Volumes that the node holds or held, until it let go of them by itself or was fenced and has returned.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Volumes []HeldVolume `json:"volumes,omitempty"`
	// VolumeCount is the number of Volumes.
	//
	// +optional
	VolumeCount int `json:"volumeCount"`
	// Fences that were asked for, one for each identity.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Fences []Fence `json:"fences,omitempty"`
	// Ended are the latest incidents of which all fences were taken back in this boot: one that
	// is made for them later shuts out a node that works.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Ended []string `json:"ended,omitempty"`
	// Tainted is when Fairlead itself gave the node its out-of-service taint.
	//
	// +optional
	Tainted *metav1.Time `json:"tainted,omitempty"`
}

// MachineIdentity tells one run of one machine from another of the same name.
type MachineIdentity struct {
	// UID of the Node object.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// BootID is node.status.nodeInfo.bootID: another one after each boot.
	//
	// +optional
	BootID string `json:"bootID,omitempty"`
	// SystemUUID is node.status.nodeInfo.systemUUID: another one on another machine.
	//
	// +optional
	SystemUUID string `json:"systemUUID,omitempty"`
}

// StorageIdentity is one storage system that the node is a client of, and as whom.
type StorageIdentity struct {
	// Driver is the name of the CSI driver.
	Driver string `json:"driver"`
	// ClusterID of the storage cluster, as in the volumeAttributes of its volumes.
	//
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// ClientID is the id that CSI-Addons gives the client.
	//
	// +optional
	ClientID string `json:"clientID,omitempty"`
	// Class is the NetworkFenceClass to fence with; without one, Secret and the clusterID are used.
	//
	// +optional
	Class string `json:"class,omitempty"`
	// Secret with which the driver fences.
	//
	// +optional
	Secret *SecretReference `json:"secret,omitempty"`
	// Addresses by which the storage system knows the node.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []ClientAddress `json:"addresses,omitempty"`
	// Problem says why the identity can't be fenced as it is recorded.
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
	// Source that it was read from: CSIAddonsNode, Multus or Node. Records of older versions may name others.
	Source string `json:"source"`
	// LastSeen is when the source last said so, to some minutes.
	LastSeen metav1.Time `json:"lastSeen"`
	// Earlier: the source reports another address now. In this boot the node may still have volumes
	// mounted by the earlier one, so it is kept, and fenced too, while the node holds any.
	//
	// +optional
	Earlier bool `json:"earlier,omitempty"`
}

// HeldVolume is a volume that may be written to from the node.
type HeldVolume struct {
	// PersistentVolume is its name.
	PersistentVolume string `json:"persistentVolume"`
	// Driver is the name of its CSI driver.
	Driver string `json:"driver"`
	// ClusterID of its storage cluster.
	//
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Waiting: the node's kubelet has said that it will use the volume, and it was not
	// attached to the node yet.
	//
	// +optional
	Waiting bool `json:"waiting,omitempty"`
	// Detached: the node works, its kubelet says that it uses the volume, and Kubernetes has
	// detached it, by force. What runs there may write to it.
	//
	// +optional
	Detached bool `json:"detached,omitempty"`
	// Until then the volume is held although the node does not show it any more: the
	// node was lost with it and came back without a boot, and was detached by force
	// meanwhile. What still runs there is given the time to end.
	//
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// Shared volumes may be written to from several nodes at once.
	//
	// +optional
	Shared bool `json:"shared,omitempty"`
	// Block devices (volumeMode) have no file system. A shared one is attached to two nodes while a virtual machine
	// migrates; a lost node holds it like an exclusive volume.
	//
	// +optional
	Block bool `json:"block,omitempty"`
}

// Fence is a NetworkFence that Fairlead asked for.
type Fence struct {
	// Name of the NetworkFence.
	Name string `json:"name"`
	// Incident that it was made for.
	Incident string `json:"incident"`
	Driver   string `json:"driver"`
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
	// Class is the NetworkFenceClass that it is made with, or else Secret.
	//
	// +optional
	Class string `json:"class,omitempty"`
	// +optional
	Secret *SecretReference `json:"secret,omitempty"`
	// CIDRs that it blocks.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	CIDRs []string `json:"cidrs"`
	// State: Requested, Fenced, Unfencing, or Leaving (only its object is still there).
	//
	// +kubebuilder:validation:Enum=Requested;Fenced;Unfencing;Leaving
	State string `json:"state"`
	// LetGo: volumes may be in use elsewhere on account of it. It was confirmed at some
	// time, or an operator let them go meanwhile: only a new boot of the node ends it.
	//
	// +optional
	LetGo bool `json:"letGo,omitempty"`
	// Since is when it was last asked for.
	Since metav1.Time `json:"since"`
	// Failures of the CSI driver so far, after each of which it is asked anew.
	//
	// +optional
	Failures int `json:"failures,omitempty"`
	// FailedUID is the UID of the NetworkFence that failed last: it is counted already.
	//
	// +optional
	FailedUID types.UID `json:"failedUID,omitempty"`
	// Message of the CSI driver, if it is not a success.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// States of a Fence.
const (
	FenceRequested = "Requested"
	FenceFenced    = "Fenced"
	FenceUnfencing = "Unfencing"
	FenceLeaving   = "Leaving"
)

// NodeFenceList is a list of NodeFences.
//
// +kubebuilder:object:root=true
type NodeFenceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeFence `json:"items"`
}
