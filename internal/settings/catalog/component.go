package catalog

import corev1 "k8s.io/api/core/v1"

// ComponentKind is what a component is, as users are told.
type ComponentKind string

// Kinds of components, all managed by the storage system.
const (
	Deployment          ComponentKind = "Deployment"
	DaemonSetComponent  ComponentKind = "DaemonSet"
	BackingImageManager ComponentKind = "BackingImageManager"
	ShareManager        ComponentKind = "ShareManager"
	InstanceManager     ComponentKind = "InstanceManager"
)

// Trait is one thing about a component that a setting decides.
type Trait string

// Traits, and the form that they are compared in.
const (
	Tolerations       Trait = "tolerations"           // TolerationsTrait
	NodeSelector      Trait = "nodeSelector"          // NodeSelectorTrait
	PriorityClassName Trait = "priorityClassName"     // its name, or ""
	StorageAttachment Trait = "storageNetwork"        // storage.Attachment.String
	CPURequest        Trait = "cpuRequest"            // CPUTrait
	LivenessTimeout   Trait = "livenessProbeTimeout"  // seconds: 10
	LogPathTrait      Trait = "logPath"               // LogDirectoryTrait
	CPUMask           Trait = "cpuMask"               // CPUMaskTrait
	MemorySize        Trait = "memorySize"            // MemoryTrait
	Hugepages         Trait = "hugepages"             // true or false
	InterruptMode     Trait = "interruptMode"         // true or false
	ProbePeriod       Trait = "probePeriod"           // seconds: 5
	ProbeTimeout      Trait = "probeTimeout"          // seconds: 4
	ProbeFailures     Trait = "probeFailureThreshold" // a number: 3
	Resources         Trait = "resources"             // ResourcesTrait
	DataEngine        Trait = "dataEngine"            // true where the instance manager should be there, else false
)

// Data engines.
const (
	EngineV1 = "v1"
	EngineV2 = "v2"
)

// Component is a pod of the storage system, or a template that pods are made
// from, as far as settings decide how it is built.
type Component struct {
	Kind ComponentKind
	// Name of the pod, or of the DaemonSet or Deployment.
	Name, UID string
	// Version is the resourceVersion that it was read with.
	Version string
	// ManagerUID and ManagerVersion are of the instance manager itself, whose pod this is.
	ManagerUID, ManagerVersion string
	// Node of a pod.
	Node string
	// Engine that an instance manager is for.
	Engine string
	// Built is what the pod or template is built with, by trait, in the form that
	// Definition.Wants has it. A trait that is not there can't be told, or does not exist in it.
	Built map[Trait]string
	// Uses are what runs in a pod or is about to: names of engines, replicas or
	// shared volumes. A pod in use is never restarted.
	Uses []string

	// Stopped: no container of it runs, so whatever is to use it cannot yet, and a
	// change hurts nothing.
	Stopped bool
	// OtherTolerations are those that no setting has given it.
	OtherTolerations []corev1.Toleration
	// Client: the DaemonSet is that of the client pods, whose pods Rollout restarts.
	Client bool
	// OptOut by annotation keeps Fairlead off it.
	OptOut bool
	// Missing: the storage system has yet to make the pod anew.
	Missing bool
	// Ready: the pod is; of a template, all its pods are, and are of the newest revision.
	Ready bool
	// Terminating pod.
	Terminating bool
	// Updated pods of Total of a template.
	Updated, Total int
}

// Seen is another one after every change of the component.
func (c Component) Seen() string { return c.UID + "@" + c.Version }

// Nodes of the cluster by name.
type Nodes map[string]Node

// Node is what settings need to know of a node.
type Node struct {
	// Ready, as the kubelet says.
	Ready bool
	// Cordoned: the storage system makes no instance manager anew there.
	Cordoned bool
	// StorageDown: the storage system's own part there is, which makes its pods anew.
	StorageDown bool
	// Storage: the storage system works on this node.
	Storage bool
	// AllocatableMilliCPU of the node, in thousandths of a CPU.
	AllocatableMilliCPU int64
	// AllocatableHugepagesMiB are its huge pages of 2 MiB.
	AllocatableHugepagesMiB int64
	// InstanceManagerMilliCPU overrides the settings for this node (nodes.longhorn.io
	// spec.instanceManagerCPURequest); 0 does not.
	InstanceManagerMilliCPU int64
	// DisabledV2: the node has no instance manager of the v2 data engine.
	DisabledV2 bool
	Labels     map[string]string
	Taints     []corev1.Taint
}

// Noun of a kind of component, for sentences.
func (k ComponentKind) Noun() string {
	switch k {
	case InstanceManager:
		return "instance manager"
	case BackingImageManager:
		return "backing image manager"
	case ShareManager:
		return "share manager"
	}
	return string(k)
}
