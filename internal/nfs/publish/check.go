package publish

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Action is what to do with a Kubernetes Service.
type Action string

const (
	// Keep it as it is.
	Keep Action = "Keep"
	// Create it: it does not exist.
	Create Action = "Create"
	// Update it to Verdict.Service.
	Update Action = "Update"
	// Wait until it is deleted, then create it.
	Wait Action = "Wait"
	// Foreign: another owner has a Service of this name. It is never adopted.
	Foreign Action = "Foreign"
	// WrongAddress: it has another address than the published one, which cannot be changed.
	WrongAddress Action = "WrongAddress"
)

// Verdict on a Kubernetes Service.
type Verdict struct {
	Action Action
	// Message says what is wrong and what to do; empty for Keep.
	Message string
	// Service to create or to update to.
	Service *corev1.Service
}

// Check compares a Kubernetes Service with what it should be. have is nil if there
// is none. Labels and annotations of others, and what the API server fills in, stay.
//
// Unlike Ondat's api-manager (shared_volume_types.go: ServiceIsEqual), it repairs
// every difference that it finds, and looks at the owner before it adopts (ensureService).
func Check(have, want *corev1.Service) Verdict {
	if have == nil {
		message := "Service " + want.Name + " does not exist: creating it"
		if want.Spec.ClusterIP != "" {
			message += " with its recorded address " + want.Spec.ClusterIP
		}
		return Verdict{Create, message, want}
	}
	owner := want.OwnerReferences[0]
	if i := slices.IndexFunc(have.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }); i < 0 {
		if slices.ContainsFunc(have.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == owner.Kind && o.Name == owner.Name }) {
			return Verdict{Action: Foreign, Message: fmt.Sprintf(
				"Service %s belongs to an earlier %s %s: Kubernetes deletes the Service, and Fairlead then creates it again", have.Name, owner.Kind, owner.Name)}
		}
		return Verdict{Action: Foreign, Message: fmt.Sprintf(
			"Service %s does not belong to %s %s: delete or rename the Service, or rename the %s", have.Name, owner.Kind, owner.Name, owner.Kind)}
	}
	if have.DeletionTimestamp != nil {
		return Verdict{Action: Wait, Message: "Service " + have.Name + " is being deleted: it is recreated with its address"}
	}
	if message := wrongAddress(have, want); message != "" {
		return Verdict{Action: WrongAddress, Message: message}
	}
	updated := repaired(have, want)
	if equality.Semantic.DeepEqual(have, updated) {
		return Verdict{Action: Keep}
	}
	return Verdict{Update, "Service " + have.Name + " was changed: restoring it", updated}
}

// wrongAddress describes a wrong ClusterIP, which can't be changed. A Service that was made an ExternalName has no
// ClusterIP, so the recorded one is set again.
func wrongAddress(have, want *corev1.Service) string {
	switch is, recorded := have.Spec.ClusterIP, want.Spec.ClusterIP; {
	case recorded != "" && is != "" && is != recorded:
		return fmt.Sprintf("Service %s has address %s, and clients have mounted %s: delete the Service, it is recreated with the address that clients have",
			have.Name, is, recorded)
	case is == corev1.ClusterIPNone:
		return fmt.Sprintf("Service %s is headless, and clients need its ClusterIP: delete the Service, it is recreated with one", have.Name)
	}
	return ""
}

// repaired is have with the wanted values of the fields that Fairlead owns.
func repaired(have, want *corev1.Service) *corev1.Service {
	s := have.DeepCopy()
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	maps.Copy(s.Labels, want.Labels)
	owner := want.OwnerReferences[0]
	i := slices.IndexFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
	s.OwnerReferences[i] = owner
	s.Spec.Selector, s.Spec.ExternalName, s.Spec.ExternalIPs = nil, "", nil
	s.Spec.PublishNotReadyAddresses = false
	s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = want.Spec.SessionAffinity, nil
	if ptr.Deref(s.Spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster) != corev1.ServiceInternalTrafficPolicyCluster {
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster) // Local drops what nodes without the server send
	}
	if s.Spec.Type != want.Spec.Type {
		s.Spec.Type = want.Spec.Type
		// The API server refuses these fields for type ClusterIP.
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort, s.Spec.AllocateLoadBalancerNodePorts = "", 0, nil
		s.Spec.LoadBalancerClass, s.Spec.LoadBalancerSourceRanges, s.Spec.LoadBalancerIP = nil, nil, ""
	}
	if s.Spec.ClusterIP == "" {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = want.Spec.ClusterIP, want.Spec.ClusterIPs
	}
	ports := slices.Clone(want.Spec.Ports)
	for i := range ports {
		have := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return len(s.Spec.Ports) == 1 || p.Name == ports[i].Name })
		if have >= 0 && (i == 0 || len(s.Spec.Ports) > 1) {
			ports[i].AppProtocol = s.Spec.Ports[have].AppProtocol
		}
	}
	s.Spec.Ports = ports
	return s
}
