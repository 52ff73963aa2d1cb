package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeFence is the record of one boot of one machine: the addresses of its storage clients, the volumes that its processes
// may write to, and the fences that were requested of it. Another boot has another record. The controller owns the record,
// which outlives the Node. Users read it; an annotation on it says what a person knows about the machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=nf,categories=fairlead
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Addresses",type=string,JSONPath=`.status.addresses`
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.volumeCount`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
type NodeFence struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what Fairlead must remember. The controller writes it, as a kubelet writes the spec of its Lease.
	//
	// +optional
	Spec NodeFenceSpec `json:"spec,omitempty"`
	// Status follows from the spec and from what the cluster shows. Nothing is decided by it.
	//
	// +optional
	Status NodeFenceStatus `json:"status,omitempty"`
}

// NodeFenceSpec is the memory of fencing for one boot. It is enough to restore it from a backup.
type NodeFenceSpec struct {
	// NodeName of the machine.
	NodeName string `json:"nodeName,omitempty"`
	// Boot that the record is of.
	//
	// +optional
	Boot Boot `json:"boot,omitzero"`
	// Unseen: the machine may have booted since, while Fairlead did not look. Its addresses may be others then, so a
	// fence proves nothing until the machine is seen again.
	//
	// +optional
	Unseen bool `json:"unseen,omitempty"`
	// Over: a later boot of the machine was seen, so no process of this boot is left. The record stays until its fences are lifted.
	//
	// +optional
	Over bool `json:"over,omitempty"`
	// NodeUID is the UID of the Node object when the record was last written; empty while there is none.
	//
	// +optional
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// ReadyChanged is the lastTransitionTime of the node's Ready condition when the record was last written. Another value
	// shows that the node was lost or came back meanwhile. The time is from another clock: it is compared for equality only.
	//
	// +optional
	ReadyChanged *metav1.Time `json:"readyChanged,omitempty"`
	// ReadySince is when Fairlead saw the node become Ready, by Fairlead's own clock.
	//
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`
	// LastSeen is when the node was last seen Ready, accurate to a few minutes.
	//
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
	// LostSince is when the node was first seen not Ready, tainted out of service, or gone. Empty while the node works.
	//
	// +optional
	LostSince *metav1.Time `json:"lostSince,omitempty"`
	// Identities of the node's storage clients.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Identities []StorageIdentity `json:"identities,omitempty"`
	// Volumes that processes of this boot may write to.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Volumes []HeldVolume `json:"volumes,omitempty"`
	// Withheld names the PersistentVolumes that are attached to no other node on account of this boot. The API server reads
	// the list while Fairlead is down.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Withheld []string `json:"withheld,omitempty"`
	// Closed: the node itself gets no volume, since a fence of this boot is requested. The API server reads this while Fairlead is down.
	//
	// +optional
	Closed bool `json:"closed,omitempty"`
	// Fences that Fairlead requested, one for each identity.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Fences []Fence `json:"fences,omitempty"`
	// Requests counts the fences that were ever requested of this boot: no two have one name.
	//
	// +optional
	Requests int64 `json:"requests,omitempty"`
	// Acts of people, the latest last. Each was carried out once, when it was recorded, and is over.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Acts []Act `json:"acts,omitempty"`
	// Tainted is when Fairlead set the node's out-of-service taint. Absent: Fairlead did not.
	//
	// +optional
	Tainted *metav1.Time `json:"tainted,omitempty"`
}

// Boot is one run of a machine, from one start to the next.
type Boot struct {
	// SystemUUID is node.status.nodeInfo.systemUUID, which differs between machines.
	//
	// +optional
	SystemUUID string `json:"systemUUID,omitempty"`
	// BootID is node.status.nodeInfo.bootID, which changes with each boot. It is empty if the machine was not seen.
	//
	// +optional
	BootID string `json:"bootID,omitempty"`
}

// NodeFencePhase is how far a node is from healthy.
type NodeFencePhase string

// Phases, in the order of an incident.
const (
	// NodeHealthy: the node is Ready, and its record is kept.
	NodeHealthy NodeFencePhase = "Healthy"
	// NodeLost: the node is not Ready. Its volumes are held. Fencing was not requested.
	NodeLost NodeFencePhase = "Lost"
	// NodeFencing: fencing has begun, and some identities are not fenced yet.
	NodeFencing NodeFencePhase = "Fencing"
	// NodeFenced: the storage systems refuse writes from the node.
	NodeFenced NodeFencePhase = "Fenced"
	// NodeDrained: the node is fenced, and has no pods or attachments left.
	NodeDrained NodeFencePhase = "Drained"
	// NodeReturned: the node has rebooted, but is still fenced.
	NodeReturned NodeFencePhase = "Returned"
	// NodeUnfencing: Fairlead is asking the storage systems to unfence the node.
	NodeUnfencing NodeFencePhase = "Unfencing"
)

// Conditions of a NodeFence.
const (
	// ConditionFenced: True while the storage refuses what this boot writes, by all of its fences.
	ConditionFenced = "Fenced"
	// ConditionHeld: True while volumes are held on account of this boot.
	ConditionHeld = "Held"
)

// NodeFenceStatus is what follows from the spec.
type NodeFenceStatus struct {
	// ObservedGeneration of the spec that the status follows from.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Fenced and Held.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
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
	// Addresses of all identities, in readable form.
	//
	// +optional
	Addresses string `json:"addresses,omitempty"`
	// AddressSources are the sources of Addresses, in readable form.
	//
	// +optional
	AddressSources string `json:"addressSources,omitempty"`
	// VolumeCount is the number of volumes in the spec.
	//
	// +optional
	VolumeCount int `json:"volumeCount"`
}

// NodeFenceList is a list of NodeFences.
//
// +kubebuilder:object:root=true
type NodeFenceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeFence `json:"items"`
}
