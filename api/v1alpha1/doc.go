// Package v1alpha1 holds Fairlead's own API types, group fairlead.io.
//
// +kubebuilder:object:generate=true
// +groupName=fairlead.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "fairlead.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Setting{}, &SettingList{},
		&NetworkRollout{}, &NetworkRolloutList{},
		&NodeFence{}, &NodeFenceList{},
		&NFSService{}, &NFSServiceList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
