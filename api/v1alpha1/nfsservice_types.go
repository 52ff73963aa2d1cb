package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NFSService is a set of NFS servers, its backends, that export the same shares.
// Clients reach them through addresses that Fairlead chooses, keeps and repairs.
// PersistentVolumes of the NFS CSI driver name it in
// volumeAttributes.service: <namespace>/<name>. See docs/nfs.md.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=nfss,categories=fairlead
// +kubebuilder:validation:XValidation:rule="self.spec.port == oldSelf.spec.port || self.spec.exposure == 'PerNode' || !has(oldSelf.status) || !has(oldSelf.status.nodes) || oldSelf.status.nodes == 0",message="spec.port can't be changed while nodes have the service mounted, since they connect to that port: detach its volumes first",fieldPath=".spec.port"
// +kubebuilder:printcolumn:name="Exposure",type=string,JSONPath=`.spec.exposure`
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.status.address`
// +kubebuilder:printcolumn:name="Backends",type=integer,JSONPath=`.status.backendCount`
// +kubebuilder:printcolumn:name="Healthy",type=integer,JSONPath=`.status.healthyBackends`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type NFSService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NFSServiceSpec `json:"spec"`
	// +optional
	Status NFSServiceStatus `json:"status,omitempty"`
}

// NFSServiceSpec is the desired state. Backends come from spec.backends, from
// spec.serverService, or from both.
//
// +kubebuilder:validation:XValidation:rule="has(self.backends) && size(self.backends) > 0 || has(self.serverService)",message="the service has no source of servers: write backends, serverService, or both"
// +kubebuilder:validation:XValidation:rule="!has(self.slots) || !has(self.exposure) || self.exposure == 'PerNodeStable'",message="only PerNodeStable has slots: remove the field, or change the exposure",fieldPath=".slots"
// +kubebuilder:validation:XValidation:rule="!has(self.rebalance) || self.rebalance == 'Never' || !has(self.exposure) || self.exposure == 'PerNodeStable'",message="only exposure PerNodeStable can move nodes whose server is well: write Never, or remove the field",fieldPath=".rebalance"
type NFSServiceSpec struct {
	// Exposure is how clients reach the servers: Stable (one ClusterIP for all
	// nodes, one server at a time), PerNode (each node mounts its server's own
	// address) or PerNodeStable (each node mounts the ClusterIP of a slot, which
	// points to one server at a time). The exposure can't be changed, since mounts
	// keep their addresses. Default PerNodeStable.
	//
	// +optional
	// +kubebuilder:default=PerNodeStable
	// +kubebuilder:validation:Enum=Stable;PerNode;PerNodeStable
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="exposure can't be changed, since mounts keep their addresses: create another NFSService"
	Exposure string `json:"exposure,omitempty"`
	// Port that clients connect to, and the port of backends without a port of their
	// own. Default 2049.
	//
	// +optional
	// +kubebuilder:default=2049
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// Backends are the servers, by address.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Backends []NFSBackend `json:"backends,omitempty"`
	// ServerService is a Service of NFS server pods in this namespace: each of its
	// ready endpoints is a backend.
	//
	// +optional
	ServerService *NFSServerService `json:"serverService,omitempty"`
	// Slots is the least number of ClusterIPs of exposure PerNodeStable. Default: four
	// for each backend. Slots are added for a healthy backend that would have none, or
	// by default fewer than four, while the others' are in use. None is ever deleted.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	Slots *int32 `json:"slots,omitempty"`
	// Shares are absolute paths that each server must export. A server without one of
	// them is taken out. Without shares, probes only check that the server answers.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Shares []string `json:"shares,omitempty"`
	// Versions of NFS that each server must serve: 3, 4 or both. Default 4.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=3;4
	Versions []int32 `json:"versions,omitempty"`
	// Health says how servers are probed.
	//
	// +optional
	Health NFSHealth `json:"health,omitempty"`
	// SlackPercent is how many percent above the average load a server may be. Above
	// that, nodes of its zone no longer prefer it, and a rebalance moves nodes away.
	// Default 20.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	SlackPercent *int32 `json:"slackPercent,omitempty"`
	// Rebalance says which nodes move away from a healthy server: Never (none) or
	// Excess (those above the average and SlackPercent; exposure PerNodeStable only).
	// Nodes of servers that are dead, draining or removed always move. Default Never.
	//
	// +optional
	// +kubebuilder:validation:Enum=Never;Excess
	Rebalance string `json:"rebalance,omitempty"`
	// MountOptions for PersistentVolumes of this service that are created without
	// mount options.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	MountOptions []string `json:"mountOptions,omitempty"`
}

// Values of NFSServiceSpec.Rebalance.
const (
	RebalanceNever  = "Never"
	RebalanceExcess = "Excess"
)

// NFSBackend is one NFS server.
type NFSBackend struct {
	// Address is an IPv4 or IPv6 address that all client nodes reach.
	Address string `json:"address"`
	// Port of the server. Default: spec.port.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// Weight is the server's share of the nodes relative to the others, 1 to 1000. Default 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Weight *int32 `json:"weight,omitempty"`
	// Zone of the server, as in the nodes' label topology.kubernetes.io/zone.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Zone string `json:"zone,omitempty"`
	// Drain: the server gets no new nodes, and its nodes move away where the
	// exposure allows it.
	//
	// +optional
	Drain bool `json:"drain,omitempty"`
}

// NFSServerService names a Service of NFS server pods.
type NFSServerService struct {
	// Name of the Service, in the NFSService's namespace.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// PortName of the NFS port. Default: the port named nfs, or the only port.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	PortName string `json:"portName,omitempty"`
}

// NFSHealth says how servers are probed. Zero values are the defaults.
//
// +kubebuilder:validation:XValidation:rule="duration(has(self.timeout) ? self.timeout : '1s') <= duration(has(self.interval) ? self.interval : '5s')",message="the timeout is longer than the interval: write 100ms up to the interval",fieldPath=".timeout"
type NFSHealth struct {
	// Interval between two probes of a server. Default 5s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="write 1s to 1h"
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Timeout of one probe. Default 1s.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('100ms')",message="write 100ms up to the interval"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Failures is the number of failed probes in a row that take a server out. Default 3.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Failures *int32 `json:"failures,omitempty"`
	// Successes is the number of successful probes in a row that bring a server back.
	// Default 2.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Successes *int32 `json:"successes,omitempty"`
	// MaxEjected is the percentage of servers that may be taken out at once. If more
	// servers fail, the prober is suspected, and no further server is taken out.
	// Default 50.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxEjected *int32 `json:"maxEjected,omitempty"`
	// MountPort is the port of the MOUNT protocol, for shares with version 3.
	// Default: the port that the server's port mapper reports. With version 3, the
	// Services of Stable and PerNodeStable publish it and the port mapper's port, 111:
	// clients of NFSv3 ask both before they mount.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	MountPort int32 `json:"mountPort,omitempty"`
}

// NFSServiceStatus is what Fairlead records and reports.
type NFSServiceStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Address is the ClusterIP of exposure Stable. A deleted Kubernetes Service is
	// recreated with the same ClusterIP.
	//
	// +optional
	Address string `json:"address,omitempty"`
	// Backend that Address points to, as ip:port. Empty: none.
	//
	// +optional
	Backend string `json:"backend,omitempty"`
	// Unpublished is the reason why Address leads nowhere, such as AddressTaken; the
	// condition Ready has details. Nodes are not given an unpublished address. Empty:
	// Address is published.
	//
	// +optional
	Unpublished string `json:"unpublished,omitempty"`
	// Slots of exposure PerNodeStable, by index.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Slots []NFSSlotStatus `json:"slots,omitempty"`
	// Backends from all sources, sorted by address.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Backends []NFSBackendStatus `json:"backends,omitempty"`
	// BackendCount is the number of backends.
	//
	// +optional
	BackendCount int32 `json:"backendCount"`
	// HealthyBackends is the number of backends that are Healthy.
	//
	// +optional
	HealthyBackends int32 `json:"healthyBackends"`
	// Nodes is the number of nodes with an attached volume of this service.
	//
	// +optional
	Nodes int32 `json:"nodes"`
	// Conditions: Ready (nodes can mount), ProberSuspected (so many servers fail at
	// once that the prober itself may be at fault), Balanced (no node has to move, and
	// no healthy server is without nodes while others have several).
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions of an NFSService.
const (
	NFSReady           = "Ready"
	NFSProberSuspected = "ProberSuspected"
	NFSBalanced        = "Balanced"
)

// NFSSlotStatus is one slot. Its Service is <service>-slot-<index>, where the
// index is its place in the list.
type NFSSlotStatus struct {
	// Address is the slot's ClusterIP; empty until its Service exists.
	//
	// +optional
	Address string `json:"address,omitempty"`
	// Backend that the slot points to, as ip:port. Empty: none.
	//
	// +optional
	Backend string `json:"backend,omitempty"`
	// Unpublished is the reason why the slot leads nowhere, such as AddressTaken.
	// Nodes are not given an unpublished slot. Empty: the slot is published.
	//
	// +optional
	Unpublished string `json:"unpublished,omitempty"`
	// Nodes is the number of nodes that have mounted the slot.
	//
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
}

// NFSBackendStatus is one server as Fairlead sees it.
type NFSBackendStatus struct {
	// Address as ip:port.
	Address string `json:"address"`
	// Source of the backend: static, service or ondat.
	//
	// +optional
	Source string `json:"source,omitempty"`
	// +optional
	Weight int32 `json:"weight,omitempty"`
	// +optional
	Zone string `json:"zone,omitempty"`
	// +optional
	Drain bool `json:"drain,omitempty"`
	// Health: Unknown (not probed yet), Healthy, Failing (probes fail, but the server
	// is still used) or Down (taken out).
	Health string `json:"health"`
	// Since is when Health changed.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Nodes is the number of nodes that use the server.
	//
	// +optional
	Nodes int32 `json:"nodes"`
	// LastError is the error of the last failed probe. Empty while probes succeed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LastError string `json:"lastError,omitempty"`
}

// NFSServiceList is a list of NFS services.
//
// +kubebuilder:object:root=true
type NFSServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NFSService `json:"items"`
}
