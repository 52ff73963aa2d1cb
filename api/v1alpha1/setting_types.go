package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Setting reports where one setting of a profile is. It also holds the value, if the
// storage system does not have a setting of this name itself.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=fls,categories=fairlead
// +kubebuilder:printcolumn:name="Value",type=string,JSONPath=`.status.effectiveValue`
// +kubebuilder:printcolumn:name="Applied",type=boolean,JSONPath=`.status.applied`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Own",type=string,priority=1,JSONPath=`.value`
// +kubebuilder:printcolumn:name="Source",type=string,priority=1,JSONPath=`.status.source`
type Setting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Value of the setting, only if the storage system has none of this name. Absent,
	// the storage system's value is in effect, or the default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value *string `json:"value,omitempty"`

	// +optional
	Status SettingStatus `json:"status,omitempty"`
}

// SettingStatus says what the cluster's pods are really built from.
type SettingStatus struct {
	// Applied is true when the roll-out of the effective value is complete.
	//
	// +optional
	Applied bool `json:"applied"`
	// AppliedValue is the value whose roll-out was last seen complete.
	//
	// +optional
	AppliedValue *string `json:"appliedValue,omitempty"`
	// Underway is true from the moment before a component is changed for a value until
	// the value in effect is applied.
	//
	// +optional
	Underway bool `json:"underway,omitempty"`
	// EffectiveValue is the value in effect.
	//
	// +optional
	EffectiveValue string `json:"effectiveValue"`
	// Source of the effective value: fairlead, the storage system's name, or default.
	//
	// +optional
	Source string `json:"source,omitempty"`
	// ObservedGeneration is the metadata.generation this status speaks of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Blockers are the concrete things that the setting waits for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Blockers []Blocker `json:"blockers,omitempty"`
	// Components says how many of each kind of component are built with the value.
	//
	// +optional
	// +listType=map
	// +listMapKey=kind
	Components []ComponentProgress `json:"components,omitempty"`
	// LastError is what went wrong when it was last rolled out; empty once it goes well.
	//
	// +optional
	LastError string `json:"lastError,omitempty"`
	// PendingSince is when the effective value came to wait.
	//
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
}

// ComponentProgress is how far one kind of component is.
type ComponentProgress struct {
	// Kind of component: Deployment, DaemonSet, BackingImageManager, ShareManager or InstanceManager.
	Kind string `json:"kind"`
	// Updated pods, of Total.
	Updated int32 `json:"updated"`
	Total   int32 `json:"total"`
}

// MaxListed is the limit of the lists in these types.
const MaxListed = 64

// ConditionApplied is the condition whose message is the Reason column.
const ConditionApplied = "Applied"

// Blocker is one concrete thing that keeps a setting from being applied.
type Blocker struct {
	// Kind of the thing: Volume, Server, Service, Client, DaemonSet, Component,
	// Conflict, Network, Node, PriorityClass, Request or Time.
	Kind string `json:"kind"`
	// Name of the thing.
	Name string `json:"name"`
	// Nodes it concerns.
	//
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`
	// Workloads that use it, as namespace/name of pods.
	//
	// +optional
	// +listType=atomic
	Workloads []string `json:"workloads,omitempty"`
	// Message says why it blocks and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// SettingList is a list of settings.
//
// +kubebuilder:object:root=true
type SettingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Setting `json:"items"`
}
