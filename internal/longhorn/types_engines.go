package longhorn

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// InstanceManager of Longhorn: a pod of the same name that runs engines and replicas.
//
// +kubebuilder:object:root=true
type InstanceManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              InstanceManagerSpec   `json:"spec,omitempty"`
	Status            InstanceManagerStatus `json:"status,omitempty"`
}

// InstanceManagerSpec of an InstanceManager.
type InstanceManagerSpec struct {
	NodeID         string         `json:"nodeID,omitempty"`
	DataEngine     string         `json:"dataEngine,omitempty"`
	DataEngineSpec DataEngineSpec `json:"dataEngineSpec,omitempty"`
}

// Engine is the data engine that the instance manager is for.
func (s InstanceManagerSpec) Engine() string { return cmp.Or(s.DataEngine, EngineV1) }

// DataEngineSpec holds values of one instance manager that override the settings.
type DataEngineSpec struct {
	V2 V2DataEngineSpec `json:"v2,omitempty"`
}

// V2DataEngineSpec is that of the v2 data engine.
type V2DataEngineSpec struct {
	CPUMask string `json:"cpuMask,omitempty"`
	// CPUIsolation is from Longhorn 1.12.1: true, false, or "" to use the setting.
	CPUIsolation string `json:"cpuIsolationEnabled,omitempty"`
}

// InstanceManagerStatus of an InstanceManager: what runs in its pod, by name.
type InstanceManagerStatus struct {
	CurrentState    string                     `json:"currentState,omitempty"`
	InstanceEngines map[string]InstanceProcess `json:"instanceEngines,omitempty"`
	// InstanceEngineFrontends are from Longhorn 1.12.
	InstanceEngineFrontends map[string]InstanceProcess `json:"instanceEngineFrontends,omitempty"`
	InstanceReplicas        map[string]InstanceProcess `json:"instanceReplicas,omitempty"`
	// InstanceShards and InstanceShardGroups are the processes of erasure-coded volumes, from Longhorn 1.12.1.
	InstanceShards      map[string]InstanceProcess `json:"instanceShards,omitempty"`
	InstanceShardGroups map[string]InstanceProcess `json:"instanceShardGroups,omitempty"`
	// BackingImages that an instance manager of the v2 data engine makes copies of.
	BackingImages map[string]BackingImageCopy `json:"backingImages,omitempty"`
	// Instances are those of before Longhorn 1.5.
	Instances map[string]InstanceProcess `json:"instances,omitempty"`
}

// BackingImageCopy is one copy of a backing image.
type BackingImageCopy struct {
	State string `json:"state,omitempty"`
}

// InstanceProcess is one engine or replica.
type InstanceProcess struct {
	Status InstanceProcessStatus `json:"status,omitempty"`
}

// InstanceProcessStatus of an InstanceProcess.
type InstanceProcessStatus struct {
	State string `json:"state,omitempty"`
}

// States of an instance. In the last three it surely does not run.
const (
	InstanceStarting   = "starting"
	InstanceRunning    = "running"
	InstanceStopped    = "stopped"
	InstanceTerminated = "terminated"
	InstanceError      = "error"
)

// Reported instances by name, as all versions of Longhorn report them, without shards; engines first.
func (s InstanceManagerStatus) Reported() []map[string]InstanceProcess {
	return []map[string]InstanceProcess{s.InstanceEngines, s.InstanceEngineFrontends, s.InstanceReplicas, s.Instances}
}

// InstanceManagerList is a list of instance managers.
//
// +kubebuilder:object:root=true
type InstanceManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []InstanceManager `json:"items"`
}

// Engine of Longhorn: the target of an attached volume.
//
// +kubebuilder:object:root=true
type Engine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              InstanceSpec   `json:"spec,omitempty"`
	Status            InstanceStatus `json:"status,omitempty"`
}

// InstanceSpec is what engines and replicas have in common.
type InstanceSpec struct {
	VolumeName  string `json:"volumeName,omitempty"`
	NodeID      string `json:"nodeID,omitempty"`
	DesireState string `json:"desireState,omitempty"`
	DataEngine  string `json:"dataEngine,omitempty"`
	// BackendStoreDriver is what dataEngine was called before Longhorn 1.6.
	BackendStoreDriver string `json:"backendStoreDriver,omitempty"`
}

// Engine is the data engine of the engine or replica.
func (s InstanceSpec) Engine() string { return cmp.Or(s.DataEngine, s.BackendStoreDriver, EngineV1) }

// InstanceStatus is what engines and replicas have in common.
type InstanceStatus struct {
	CurrentState        string `json:"currentState,omitempty"`
	InstanceManagerName string `json:"instanceManagerName,omitempty"`
}

// EngineList is a list of engines.
//
// +kubebuilder:object:root=true
type EngineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Engine `json:"items"`
}

// Replica of Longhorn: one copy of a volume.
//
// +kubebuilder:object:root=true
type Replica struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              InstanceSpec   `json:"spec,omitempty"`
	Status            InstanceStatus `json:"status,omitempty"`
}

// ReplicaList is a list of replicas.
//
// +kubebuilder:object:root=true
type ReplicaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Replica `json:"items"`
}

// BackingImageManager of Longhorn: a pod of the same name that handles the files
// of backing images on one disk.
//
// +kubebuilder:object:root=true
type BackingImageManager struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BackingImageManagerSpec   `json:"spec,omitempty"`
	Status            BackingImageManagerStatus `json:"status,omitempty"`
}

// BackingImageManagerSpec of a BackingImageManager.
type BackingImageManagerSpec struct {
	NodeID string `json:"nodeID,omitempty"`
}

// BackingImageManagerStatus of a BackingImageManager.
type BackingImageManagerStatus struct {
	CurrentState        string                          `json:"currentState,omitempty"`
	BackingImageFileMap map[string]BackingImageFileInfo `json:"backingImageFileMap,omitempty"`
}

// BackingImageFileInfo is one file.
type BackingImageFileInfo struct {
	State string `json:"state,omitempty"`
	// SendingReference counts those that the file is being sent to.
	SendingReference int `json:"sendingReference,omitempty"`
}

// States of a backing image file in which it is being written.
const (
	FilePending    = "pending"
	FileStarting   = "starting"
	FileInProgress = "in-progress"
)

// BackingImageManagerList is a list of backing image managers.
//
// +kubebuilder:object:root=true
type BackingImageManagerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BackingImageManager `json:"items"`
}

// Node of Longhorn: a node of the cluster that it works on.
//
// +kubebuilder:object:root=true
type Node struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NodeSpec   `json:"spec,omitempty"`
	Status            NodeStatus `json:"status,omitempty"`
}

// Down reports whether Longhorn says that it does not work on the node: its manager
// is down, or the node is.
func (n *Node) Down() bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c NodeCondition) bool { return c.Type == "Ready" && c.Status != "True" })
}

// NodeStatus of a Node.
type NodeStatus struct {
	Conditions []NodeCondition `json:"conditions,omitempty"`
}

// NodeCondition of a Node.
type NodeCondition struct {
	Type   string `json:"type"`
	Status string `json:"status"`
}

// NodeSpec of a Node.
type NodeSpec struct {
	// InstanceManagerCPURequest in thousandths of a CPU; 0 leaves it to the settings.
	InstanceManagerCPURequest int64 `json:"instanceManagerCPURequest,omitempty"`
}

// NodeList is a list of nodes.
//
// +kubebuilder:object:root=true
type NodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Node `json:"items"`
}
