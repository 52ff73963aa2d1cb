// Package csiaddons holds the fields of csi-addons' objects
// (csiaddons.openshift.io/v1alpha1) that Fairlead reads and writes. The csi-addons Go
// module is not used, because it requires the dependencies of its operator.
//
// +kubebuilder:object:generate=true
package csiaddons

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the types here.
var GroupVersion = schema.GroupVersion{Group: "csiaddons.openshift.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&NetworkFence{}, &NetworkFenceList{},
		&NetworkFenceClass{}, &NetworkFenceClassList{},
		&CSIAddonsNode{}, &CSIAddonsNodeList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// NetworkFence asks a CSI driver to block or unblock writes from some addresses.
//
// +kubebuilder:object:root=true
type NetworkFence struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NetworkFenceSpec   `json:"spec,omitempty"`
	Status            NetworkFenceStatus `json:"status,omitempty"`
}

// States of a NetworkFence.
const (
	Fenced   = "Fenced"
	Unfenced = "Unfenced"
)

// NetworkFenceSpec names a class, or else a driver, a secret and parameters.
type NetworkFenceSpec struct {
	NetworkFenceClassName string            `json:"networkFenceClassName,omitempty"`
	Driver                string            `json:"driver,omitempty"`
	FenceState            string            `json:"fenceState,omitempty"`
	CIDRs                 []string          `json:"cidrs"`
	Secret                *Secret           `json:"secret,omitempty"`
	Parameters            map[string]string `json:"parameters,omitempty"`
}

// Secret with the driver's credentials for fencing.
type Secret struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// NetworkFenceStatus is the result of the request. It has no observed generation.
type NetworkFenceStatus struct {
	Result  string `json:"result,omitempty"`
	Message string `json:"message,omitempty"`
}

// NetworkFenceList is a list of fences.
//
// +kubebuilder:object:root=true
type NetworkFenceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkFence `json:"items"`
}

// NetworkFenceClass says how a driver fences.
//
// +kubebuilder:object:root=true
type NetworkFenceClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NetworkFenceClassSpec `json:"spec,omitempty"`
}

// NetworkFenceClassSpec configures fencing with one driver.
type NetworkFenceClassSpec struct {
	Provisioner string            `json:"provisioner"`
	Parameters  map[string]string `json:"parameters,omitempty"`
}

// NetworkFenceClassList is a list of classes.
//
// +kubebuilder:object:root=true
type NetworkFenceClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkFenceClass `json:"items"`
}

// CSIAddonsNode is a CSI driver's pod on a node.
//
// +kubebuilder:object:root=true
type CSIAddonsNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CSIAddonsNodeSpec   `json:"spec,omitempty"`
	Status            CSIAddonsNodeStatus `json:"status,omitempty"`
}

// CSIAddonsNodeSpec names the driver and the node.
type CSIAddonsNodeSpec struct {
	Driver CSIAddonsNodeDriver `json:"driver"`
}

// CSIAddonsNodeDriver is a driver on a node. NodeID is the driver's name for the node.
type CSIAddonsNodeDriver struct {
	Name     string `json:"name"`
	EndPoint string `json:"endpoint"`
	NodeID   string `json:"nodeID"`
}

// CSIAddonsNodeStatus lists the node's clients.
type CSIAddonsNodeStatus struct {
	State                    string                     `json:"state,omitempty"`
	NetworkFenceClientStatus []NetworkFenceClientStatus `json:"networkFenceClientStatus,omitempty"`
}

// NetworkFenceClientStatus are the clients of one class.
type NetworkFenceClientStatus struct {
	NetworkFenceClassName string `json:"networkFenceClassName"`
	// ClientDetails begins with a capital letter in the JSON, too.
	ClientDetails []ClientDetail `json:"ClientDetails"`
}

// ClientDetail is one client.
type ClientDetail struct {
	ID    string   `json:"id"`
	CIDRs []string `json:"cidrs"`
}

// CSIAddonsNodeList is a list of nodes.
//
// +kubebuilder:object:root=true
type CSIAddonsNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CSIAddonsNode `json:"items"`
}
