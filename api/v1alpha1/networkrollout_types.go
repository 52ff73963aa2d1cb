package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkRollout records which network the shared volumes of one profile are
// on, clients and servers apart. The controller owns it; the webhooks build
// pods and Services from it. Users read it, they do not write it.
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

// NetworkRolloutStatus is the record of the two halves.
type NetworkRolloutStatus struct {
	// Recorded is true once the record was initialised from what the cluster runs.
	//
	// +optional
	Recorded bool `json:"recorded"`
	// Desired network, as the settings say.
	//
	// +optional
	Desired string `json:"desired"`
	// +optional
	Clients ClientsRollout `json:"clients,omitempty"`
	// +optional
	Servers ServersRollout `json:"servers,omitempty"`
	// Phase of the roll-out: Applied, Waiting, RollingClients, SwitchingServers or Invalid.
	//
	// +optional
	Phase string `json:"phase,omitempty"`
	// Message says what is being done, or what is waited for.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// Blockers are the concrete things that are waited for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Blockers []Blocker `json:"blockers,omitempty"`
	// Replacing is the Service, as JSON, that is being deleted and created anew
	// since its cluster IP can't be changed. Whoever finds it here creates it.
	//
	// +optional
	Replacing string `json:"replacing,omitempty"`
	// OutOfLine are objects that are not as the record says, and what each waits for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	OutOfLine []OutOfLine `json:"outOfLine,omitempty"`
}

// OutOfLine is an object that came up while Fairlead was away, or was changed by
// somebody else, or belongs to a volume that has been attached since before.
type OutOfLine struct {
	// Kind of the object: Service, Server or Client.
	Kind string `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
	// Message says what is wrong and what it waits for.
	Message string `json:"message"`
}

// ClientsRollout is the half of the pods that mount volumes.
type ClientsRollout struct {
	// Network that client pods are built with.
	//
	// +optional
	Network string `json:"network"`
	// VolumeNetworks are the networks of single volumes that client pods are built with too.
	//
	// +optional
	// +listType=set
	VolumeNetworks []string `json:"volumeNetworks,omitempty"`
	// Updated client pods, of all that there should be.
	//
	// +optional
	Updated int32 `json:"updated"`
	// Total client pods that there should be.
	//
	// +optional
	Total int32 `json:"total"`
	// Mounts is where clients mount volumes, by the settings' values.
	//
	// +optional
	Mounts *ClientMounts `json:"mounts,omitempty"`
}

// ClientMounts says in whose network namespace clients mount volumes: Client (a
// mount dies with the client pod), Host (it does not) or ClientOrHost.
type ClientMounts struct {
	// Place of what is mounted now.
	Place string `json:"place"`
	// Since is when this place was first seen.
	Since metav1.MicroTime `json:"since"`
	// Before is the place before; empty is not known.
	//
	// +optional
	Before string `json:"before,omitempty"`
}

// ServersRollout is the half of the pods that serve volumes and their Services.
type ServersRollout struct {
	// Network that Services and server pods created from now on are built with.
	//
	// +optional
	Network string `json:"network"`
	// VolumeNetworks are the networks of single volumes that Services and server
	// pods created from now on may be on.
	//
	// +optional
	// +listType=set
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
