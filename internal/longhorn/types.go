// Package longhorn has what is Longhorn's own: its names, its versions, and the few fields of
// its objects (longhorn.io/v1beta2) that Fairlead reads. Objects are never written back whole:
// writes are patches, which keep the fields that the types lack.
//
// +kubebuilder:object:generate=true
package longhorn

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the types here.
var GroupVersion = schema.GroupVersion{Group: "longhorn.io", Version: "v1beta2"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Setting{}, &SettingList{}, &Volume{}, &VolumeList{}, &VolumeAttachment{}, &VolumeAttachmentList{}, &ShareManager{}, &ShareManagerList{},
		&InstanceManager{}, &InstanceManagerList{}, &Engine{}, &EngineList{}, &Replica{}, &ReplicaList{},
		&BackingImageManager{}, &BackingImageManagerList{}, &Node{}, &NodeList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Setting of Longhorn: a value, and whether it is applied. It has no other field.
//
// +kubebuilder:object:root=true
type Setting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Value             string        `json:"value"`
	Status            SettingStatus `json:"status,omitempty"`
}

// SettingStatus of a Setting.
type SettingStatus struct {
	Applied bool `json:"applied"`
}

// SettingList is a list of settings.
//
// +kubebuilder:object:root=true
type SettingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Setting `json:"items"`
}

// Volume of Longhorn.
//
// +kubebuilder:object:root=true
type Volume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VolumeSpec   `json:"spec,omitempty"`
	Status            VolumeStatus `json:"status,omitempty"`
}

// AccessModeRWX is the access mode of volumes that may be shared.
const AccessModeRWX = "rwx"

// VolumeSpec of a Volume.
type VolumeSpec struct {
	AccessMode string `json:"accessMode,omitempty"`
	Migratable bool   `json:"migratable,omitempty"`
	DataEngine string `json:"dataEngine,omitempty"`
	// BackendStoreDriver is what dataEngine was called before Longhorn 1.6.
	BackendStoreDriver string `json:"backendStoreDriver,omitempty"`
}

// Engine is the data engine of the volume.
func (s VolumeSpec) Engine() string { return cmp.Or(s.DataEngine, s.BackendStoreDriver, EngineV1) }

// Shared reports whether clients mount the volume over NFS. A migratable RWX volume is a
// block device for live migration (longhorn#11158).
func (s VolumeSpec) Shared() bool { return s.AccessMode == AccessModeRWX && !s.Migratable }

// Detached reports whether the volume is surely detached: an unknown state may be an attached one.
func (v *Volume) Detached() bool {
	state := v.Status.State
	return v.Status.CurrentNodeID == "" && (state == "" || state == StateCreating || state == StateDetached)
}

// States of a volume in which it is surely not attached.
const (
	StateCreating = "creating"
	StateDetached = "detached"
)

// VolumeStatus of a Volume.
type VolumeStatus struct {
	State            string           `json:"state,omitempty"`
	CurrentNodeID    string           `json:"currentNodeID,omitempty"`
	KubernetesStatus KubernetesStatus `json:"kubernetesStatus,omitempty"`
	// RemountRequestedAt is when Longhorn requested a remount of the volume, RFC 3339.
	RemountRequestedAt string `json:"remountRequestedAt,omitempty"`
}

// KubernetesStatus says who uses the volume. With LastPodRefAt it speaks of the past.
type KubernetesStatus struct {
	PVName          string           `json:"pvName,omitempty"`
	Namespace       string           `json:"namespace,omitempty"`
	LastPodRefAt    string           `json:"lastPodRefAt,omitempty"`
	WorkloadsStatus []WorkloadStatus `json:"workloadsStatus,omitempty"`
}

// WorkloadStatus is one pod, with its phase and owner.
type WorkloadStatus struct {
	PodName   string `json:"podName,omitempty"`
	PodStatus string `json:"podStatus,omitempty"`
	// WorkloadName and WorkloadType are the pod's first owner and its kind.
	WorkloadName string `json:"workloadName,omitempty"`
	WorkloadType string `json:"workloadType,omitempty"`
}

// VolumeList is a list of volumes.
//
// +kubebuilder:object:root=true
type VolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Volume `json:"items"`
}

// VolumeAttachment of Longhorn: who wants a volume attached.
//
// +kubebuilder:object:root=true
type VolumeAttachment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              VolumeAttachmentSpec `json:"spec,omitempty"`
}

// VolumeAttachmentSpec of a VolumeAttachment.
type VolumeAttachmentSpec struct {
	Volume            string                      `json:"volume,omitempty"`
	AttachmentTickets map[string]AttachmentTicket `json:"attachmentTickets,omitempty"`
}

// AttachmentTicket is one wish to have a volume attached to a node.
type AttachmentTicket struct {
	// Type is the part of Longhorn that wishes it.
	Type   string `json:"type,omitempty"`
	NodeID string `json:"nodeID,omitempty"`
}

// VolumeAttachmentList is a list of volume attachments.
//
// +kubebuilder:object:root=true
type VolumeAttachmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VolumeAttachment `json:"items"`
}

// ShareManager of Longhorn.
//
// +kubebuilder:object:root=true
type ShareManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            ShareManagerStatus `json:"status,omitempty"`
}

// ShareManagerError is the state of a share manager whose pod has failed.
const ShareManagerError = "error"

// ShareManagerStatus of a ShareManager.
type ShareManagerStatus struct {
	State    string `json:"state,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
}

// ShareManagerList is a list of share managers.
//
// +kubebuilder:object:root=true
type ShareManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ShareManager `json:"items"`
}
