package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Setting reports the roll-out of one setting. The Setting also holds the
// value, if the storage system has no setting of this name.
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

	// Value of the setting, if the storage system has no setting of this name. If the
	// value is absent, the storage system's value or the default is in effect.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value *string `json:"value,omitempty"`

	// +optional
	Status SettingStatus `json:"status,omitempty"`
}

// SettingStatus says which value the cluster's pods are built with.
type SettingStatus struct {
	// Applied is true when the roll-out of the effective value is complete.
	//
	// +optional
	Applied bool `json:"applied"`
	// AppliedValue is the last value whose roll-out was complete.
	//
	// +optional
	AppliedValue *string `json:"appliedValue,omitempty"`
	// Underway is true while a roll-out is in progress: from just before the first
	// component changes until the effective value is applied.
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
	// ObservedGeneration is the metadata.generation that the status refers to.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Blockers are the objects that the setting waits for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Blockers []Blocker `json:"blockers,omitempty"`
	// Components counts, for each kind of component, the pods built with the value.
	//
	// +optional
	// +listType=map
	// +listMapKey=kind
	Components []ComponentProgress `json:"components,omitempty"`
	// LastError is the error of the last roll-out. Empty after a success.
	//
	// +optional
	LastError string `json:"lastError,omitempty"`
	// PendingSince is since when the effective value waits to be applied.
	//
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
}

// ComponentProgress is the progress of one kind of component.
type ComponentProgress struct {
	// Kind of component: Deployment, DaemonSet, BackingImageManager, ShareManager or InstanceManager.
	Kind string `json:"kind"`
	// Updated is the number of pods that are up to date.
	Updated int32 `json:"updated"`
	// Total is the number of pods.
	Total int32 `json:"total"`
}

// MaxListed is the limit of the lists in these types.
const MaxListed = 64

// ConditionApplied is the condition whose message is the Reason column.
const ConditionApplied = "Applied"

// Blocker is an object that delays a setting.
type Blocker struct {
	// Kind of the blocker: Volume, Server, Service, Client, DaemonSet, Component,
	// Conflict, Network, Node, PriorityClass, Request or Time.
	Kind string `json:"kind"`
	// Name of the blocker.
	Name string `json:"name"`
	// Nodes that the blocker concerns.
	//
	// +optional
	// +listType=atomic
	Nodes []string `json:"nodes,omitempty"`
	// Workloads that use the blocker, as namespace/name of pods.
	//
	// +optional
	// +listType=atomic
	Workloads []string `json:"workloads,omitempty"`
	// Owners to stop, so that the workloads stop, as namespace/kind/name.
	//
	// +optional
	// +listType=atomic
	Owners []string `json:"owners,omitempty"`
	// Message says why the blocker delays the setting, and what to do.
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
