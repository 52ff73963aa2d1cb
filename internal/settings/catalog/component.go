package catalog

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ComponentKind is the kind of a component in messages.
type ComponentKind string

// Kinds of components, all managed by the storage system.
const (
	Deployment          ComponentKind = "Deployment"
	DaemonSetComponent  ComponentKind = "DaemonSet"
	BackingImageManager ComponentKind = "BackingImageManager"
	ShareManager        ComponentKind = "ShareManager"
	InstanceManager     ComponentKind = "InstanceManager"
)

// Trait is a property of a component that a setting decides.
type Trait string

// Traits, and the form in which traits are compared.
const (
	Tolerations       Trait = "tolerations"           // TolerationsTrait
	NodeSelector      Trait = "nodeSelector"          // NodeSelectorTrait
	PriorityClassName Trait = "priorityClassName"     // name, or ""
	StorageAttachment Trait = "storageNetwork"        // multus.Attachment.String
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
	DataEngine        Trait = "dataEngine"            // true if the instance manager should exist
)

// Data engines.
const (
	EngineV1 = "v1"
	EngineV2 = "v2"
)

// Component is a pod of the storage system, or a template of such pods.
type Component struct {
	Kind ComponentKind
	// Name of the pod, or of the DaemonSet or Deployment.
	Name, UID string
	// Version is the resourceVersion.
	Version string
	// ManagerUID and ManagerVersion of the InstanceManager object that owns the pod.
	ManagerUID, ManagerVersion string
	// Node of a pod.
	Node string
	// Engine is the data engine of an instance manager.
	Engine string
	// Built has the traits of the pod or template, in the form of Definition.Wants. Unknown traits are absent.
	Built map[Trait]string
	// Uses names the engines, replicas or shared volumes that run in a pod or will run there.
	// A pod in use is never restarted.
	Uses []string

	// Stopped: no container of the pod runs, so no volume uses the pod yet.
	Stopped bool
	// OtherTolerations come from no setting.
	OtherTolerations []corev1.Toleration
	// Client: the DaemonSet of the client pods, which the rollout of the network restarts.
	Client bool
	// OptOut: an annotation forbids Fairlead to change the component.
	OptOut bool
	// Missing: the storage system has not recreated the pod yet.
	Missing bool
	// Ready: the pod is Ready; for a template, all pods are Ready and have the newest revision.
	Ready bool
	// Unaddressed: the pod would be Ready if Multus reported its address on the storage network.
	Unaddressed bool
	// Terminating pod.
	Terminating bool
	// Updated and Total pods of a template.
	Updated, Total int
}

// Seen identifies a state of the component: every change of the component changes Seen.
func (c Component) Seen() string { return c.UID + "@" + c.Version }

// Nodes of the cluster by name.
type Nodes map[string]Node

// Node has the facts on a node that settings need.
type Node struct {
	// Ready condition of the kubelet.
	Ready bool
	// Cordoned: the storage system recreates no instance manager on the node.
	Cordoned bool
	// StorageDown: the manager pod of the storage system, which recreates the other pods, is down on the node.
	StorageDown bool
	// Storage: the storage system runs on the node.
	Storage bool
	// AllocatableMilliCPU is in thousandths of a CPU.
	AllocatableMilliCPU int64
	// AllocatableHugepagesMiB counts huge pages of 2 MiB.
	AllocatableHugepagesMiB int64
	// InstanceManagerMilliCPU overrides the settings for this node (nodes.longhorn.io
	// spec.instanceManagerCPURequest); 0 means no override.
	InstanceManagerMilliCPU int64
	// DisabledV2: the node has no instance manager of the v2 data engine.
	DisabledV2 bool
	Labels     map[string]string
	Taints     []corev1.Taint
}

// Noun names the kind in a sentence.
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

// samples have a component of each kind, and of each variety that settings tell apart.
var samples = []Component{
	{Kind: Deployment, Name: "csi-attacher"}, {Kind: DaemonSetComponent, Name: "longhorn-csi-plugin"}, {Kind: DaemonSetComponent, Name: "engine-image-ei"},
	{Kind: BackingImageManager}, {Kind: ShareManager}, {Kind: InstanceManager, Engine: EngineV1}, {Kind: InstanceManager, Engine: EngineV2},
}

// Kinds returns the kinds of components that are built with the setting.
func (d Definition) Kinds() []ComponentKind {
	if d.Wants == nil {
		return nil
	}
	value, err := d.Normalize(d.Default)
	if err != nil {
		value = d.Default
	}
	var kinds []ComponentKind
	for _, c := range samples {
		if _, ok := d.Wants(value, c, Nodes{c.Node: {AllocatableMilliCPU: 1000}}); ok && !slices.Contains(kinds, c.Kind) {
			kinds = append(kinds, c.Kind)
		}
	}
	return kinds
}

// wants returns a Definition.Wants that asks for the normalized value.
// A malformed value, from before Fairlead's checks, asks for nothing, and so restarts no pod.
func wants(about func(Component) bool, normalize func(string) (string, error)) func(string, Component, Nodes) (string, bool) {
	return func(value string, c Component, _ Nodes) (string, bool) {
		if !about(c) {
			return "", false
		}
		want, err := normalize(value)
		if err != nil {
			return "", false
		}
		return want, true
	}
}

// everyComponent matches the components that the storage system creates and manages.
func everyComponent(c Component) bool {
	switch c.Kind {
	case Deployment, DaemonSetComponent, BackingImageManager, ShareManager, InstanceManager:
		return true
	}
	return false
}

func onStorageNetwork(c Component) bool {
	return c.Kind == InstanceManager || c.Kind == BackingImageManager
}

func instanceManager(c Component) bool { return c.Kind == InstanceManager }

func instanceManagerOf(engine string) func(Component) bool {
	return func(c Component) bool { return c.Kind == InstanceManager && c.Engine == engine }
}

// engineImage matches the DaemonSet of an engine image. Source: longhorn-manager
// types/types.go, GetDaemonSetNameFromEngineImageName.
func engineImage(c Component) bool {
	return c.Kind == DaemonSetComponent && strings.HasPrefix(c.Name, "engine-image-")
}
