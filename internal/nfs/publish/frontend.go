package publish

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// PortName is the name of the port in Services and slices. They must agree: kube-proxy joins them by name.
const PortName = "nfs"

// Labels of the Services that Fairlead creates.
const (
	// ServiceLabel is the name of the NFSService.
	ServiceLabel = "fairlead.io/nfs-service"
	// SlotLabel is the index of the slot; only Services of PerNodeStable have it.
	SlotLabel = "fairlead.io/nfs-slot"
)

// Family of IP addresses, as in a Service.
type Family = corev1.IPFamily

// FamilyOf is the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Unmap().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// Frontend is one address under which clients reach the service, and where it points.
type Frontend struct {
	// Name of the Kubernetes Service.
	Namespace, Name string
	// Service is the value of ServiceLabel: the name of the NFSService.
	Service string
	// Owner of the Kubernetes Service. A Service of another owner is never adopted.
	Owner metav1.OwnerReference
	// Labels besides ServiceLabel.
	Labels map[string]string
	// Port that clients mount; backends may listen on others.
	Port int32
	// Slot is the index of the slot; -1 for exposure Stable.
	Slot int
	// ClusterIP as recorded in status; not valid before the Service exists. It
	// never changes: mounts keep the address.
	ClusterIP netip.Addr
	// Backend that the address points to; not valid: none.
	Backend netip.AddrPort
	// TargetPort of the Service; 0: the port that clients mount. It has no effect: the
	// port of the slices counts.
	TargetPort uint16
	// MountPort of the MOUNT protocol, for clients of NFSv3: it is published with the port mapper's; 0: neither.
	MountPort uint16
}

// Family of the frontend: that of its ClusterIP, else of its backend, else empty.
func (f Frontend) Family() Family {
	switch {
	case f.ClusterIP.IsValid():
		return FamilyOf(f.ClusterIP)
	case f.Backend.IsValid():
		return FamilyOf(f.Backend.Addr())
	}
	return ""
}

// Names returns the names of the Services that an NFS service has, by exposure:
// its own name; none; or one for each slot.
func Names(service string, exposure nfs.Exposure, slots int) []string {
	switch exposure {
	case nfs.Stable:
		return []string{service}
	case nfs.PerNodeStable:
		names := make([]string, slots)
		for i := range names {
			names[i] = fmt.Sprintf("%s-slot-%d", service, i)
		}
		return names
	}
	return nil
}

// Object is what the Kubernetes Service should be: a ClusterIP, no selector, one port for NFS, and those of NFSv3. A
// recorded ClusterIP is requested again.
func (f Frontend) Object() *corev1.Service {
	ports := append([]corev1.ServicePort{{Name: PortName, Protocol: corev1.ProtocolTCP, Port: f.Port, TargetPort: intstr.FromInt32(cmp.Or(int32(f.TargetPort), f.Port))}},
		version3Ports(f.MountPort)...)
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Namespace, Name: f.Name, Labels: f.WithLabels(map[string]string{}), OwnerReferences: []metav1.OwnerReference{f.Owner},
		},
		Spec: corev1.ServiceSpec{
			Type:            corev1.ServiceTypeClusterIP,
			SessionAffinity: corev1.ServiceAffinityNone,
			Ports:           withoutTwins(ports),
		},
	}
	if f.Slot >= 0 {
		s.Labels[SlotLabel] = fmt.Sprint(f.Slot)
	}
	if family := f.Family(); family != "" {
		policy := corev1.IPFamilyPolicySingleStack
		s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = []Family{family}, &policy
	}
	if f.ClusterIP.IsValid() {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = f.ClusterIP.String(), []string{f.ClusterIP.String()}
	}
	return s
}

// WithLabels adds the labels of the frontend's objects, which tell them from those of other publishers.
func (f Frontend) WithLabels(labels map[string]string) map[string]string {
	labels[ServiceLabel] = f.Service
	maps.Copy(labels, f.Labels)
	return labels
}
