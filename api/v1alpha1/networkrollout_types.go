package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkRollout records the network of shared volumes, separately
// for clients and servers. The controller owns the record; the webhooks build
// pods and Services from it. Users only read it.
//
// A network is written <namespace>/<name>@<interface>; empty is the cluster network.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=nro,categories=fairlead
// +kubebuilder:printcolumn:name="Desired",type=string,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="Clients",type=string,JSONPath=`.status.clients.network`
// +kubebuilder:printcolumn:name="Servers",type=string,JSONPath=`.status.servers.network`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NetworkRollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status NetworkRolloutStatus `json:"status,omitempty"`
}

// NetworkRolloutStatus is the record of clients and servers.
type NetworkRolloutStatus struct {
	// Recorded is true once the record was initialised from the running pods and Services.
	//
	// +optional
	Recorded bool `json:"recorded"`
	// Desired is the network that the settings name.
	//
	// +optional
	Desired string `json:"desired"`
	// +optional
	Clients ClientsRollout `json:"clients,omitempty"`
	// +optional
	Servers ServersRollout `json:"servers,omitempty"`
	// Phase is the state of the roll-out: Applied, Waiting, RollingClients,
	// SwitchingServers or Invalid.
	//
	// +optional
	Phase string `json:"phase,omitempty"`
	// Message says what the controller is doing or waiting for.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// Blockers are the objects that the roll-out waits for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Blockers []Blocker `json:"blockers,omitempty"`
	// Refused lists writes that the API server refused, for example by a policy or
	// another webhook. Each is tried again within a minute; other work goes on.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Refused []RefusedWrite `json:"refused,omitempty"`
	// Replacing is a Service, as JSON, that the controller is deleting and recreating,
	// because a cluster IP can't be changed. After a restart the controller recreates
	// the Service from this field.
	//
	// +optional
	Replacing string `json:"replacing,omitempty"`
	// OutOfLine lists objects that differ from the record, and what each waits for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	OutOfLine []OutOfLine `json:"outOfLine,omitempty"`
	// DeadMounts lists workloads that have lost a mount and that Fairlead does not restart.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	DeadMounts []DeadMount `json:"deadMounts,omitempty"`
}

// DeadMount is a workload pod whose volumes do not answer, because the network namespace
// of the mount is gone.
type DeadMount struct {
	// Pod is namespace/name of the workload pod.
	Pod string `json:"pod"`
	// UID of the pod: another pod of its name has no dead mount.
	UID string `json:"uid"`
	// Node of the pod.
	Node string `json:"node"`
	// Volumes that do not answer.
	//
	// +listType=atomic
	Volumes []string `json:"volumes"`
	// Reason why the pod is not restarted, in a few words.
	Reason string `json:"reason"`
	// Message says why the mount is dead, why the pod is not restarted, and what to do.
	Message string `json:"message"`
}

// RefusedWrite is a write that the API server refused.
type RefusedWrite struct {
	// Kind of the object: Service, Client or DaemonSet.
	Kind string `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
	// Message is the answer of the API server.
	Message string `json:"message"`
}

// OutOfLine is an object that differs from the record. It was created while Fairlead
// was down, another client changed it, or its volume was attached before the change.
type OutOfLine struct {
	// Kind of the object: Service, Server or Client.
	Kind string `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
	// Message says what is wrong and what the object waits for.
	Message string `json:"message"`
}

// ClientsRollout is the record of client pods, which mount volumes.
type ClientsRollout struct {
	// Network is the network that client pods are built with.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?@[A-Za-z0-9._-]{1,15})?$`
	Network string `json:"network"`
	// VolumeNetworks are the per-volume networks that client pods are also built with.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?@[A-Za-z0-9._-]{1,15})?$`
	VolumeNetworks []string `json:"volumeNetworks,omitempty"`
	// Updated is the number of client pods that are up to date.
	//
	// +optional
	Updated int32 `json:"updated"`
	// Total is the number of client pods that there should be.
	//
	// +optional
	Total int32 `json:"total"`
	// Mounts says where clients mount volumes, according to the settings.
	//
	// +optional
	Mounts *ClientMounts `json:"mounts,omitempty"`
}

// ClientMounts says in which network namespace clients mount volumes: Client (a
// mount dies with the client pod), Host (a mount survives the client pod) or ClientOrHost.
type ClientMounts struct {
	// Place is the network namespace of current mounts.
	Place string `json:"place"`
	// Since is when Fairlead first saw Place.
	Since metav1.MicroTime `json:"since"`
	// Before is the previous Place. Empty: not known.
	//
	// +optional
	Before string `json:"before,omitempty"`
	// BeforeSince is when Fairlead first saw Before. Empty: Fairlead saw no other place earlier.
	//
	// +optional
	BeforeSince *metav1.MicroTime `json:"beforeSince,omitempty"`
}

// ServersRollout is the record of server pods and their Services.
type ServersRollout struct {
	// Network is the network that new Services and server pods are built with.
	//
	// +optional
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?@[A-Za-z0-9._-]{1,15})?$`
	Network string `json:"network"`
	// VolumeNetworks are the per-volume networks that new Services and server pods may use.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?@[A-Za-z0-9._-]{1,15})?$`
	VolumeNetworks []string `json:"volumeNetworks,omitempty"`
	// Since is when the networks were last changed.
	//
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
}

// NetworkRolloutList is a list of roll-outs.
//
// +kubebuilder:object:root=true
type NetworkRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkRollout `json:"items"`
}
