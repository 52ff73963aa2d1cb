package publish

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// Slice is the wanted content of one EndpointSlice of a frontend.
type Slice struct {
	Family discoveryv1.AddressType
	// Backend that the slice names; not valid: the slice names nothing.
	Backend netip.AddrPort
	// MountPort as in Frontend.
	MountPort uint16
}

// Slices returns the slices of a frontend, one per address family, in the order in
// which to write them: a slice that loses its address comes first, so that two
// addresses are never ready at once. A slice that names nothing need not be created.
//
// A backend that the ClusterIP cannot reach, since its family is another, is not named.
func (f Frontend) Slices() []Slice {
	list := []Slice{{Family: discoveryv1.AddressTypeIPv4, MountPort: f.MountPort}, {Family: discoveryv1.AddressTypeIPv6, MountPort: f.MountPort}}
	if f.Backend.IsValid() && FamilyOf(f.Backend.Addr()) == f.Family() {
		family := discoveryv1.AddressType(f.Family())
		i := slices.IndexFunc(list, func(s Slice) bool { return s.Family == family })
		list[i].Backend = f.Backend
		slices.SortStableFunc(list, func(a, b Slice) int { return named(a) - named(b) })
	}
	return list
}

func named(s Slice) int {
	if s.Backend.IsValid() {
		return 1
	}
	return 0
}

// Endpoints of the slice: at most one, ready.
func (s Slice) Endpoints() []discoveryv1.Endpoint {
	if !s.Backend.IsValid() {
		return []discoveryv1.Endpoint{}
	}
	return []discoveryv1.Endpoint{{
		Addresses:  []string{s.Backend.Addr().String()},
		Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
	}}
}

// Ports of the slice: the backend's, by the names of the Service's ports.
func (s Slice) Ports() []discoveryv1.EndpointPort {
	if !s.Backend.IsValid() {
		return []discoveryv1.EndpointPort{}
	}
	return append([]discoveryv1.EndpointPort{{
		Name: ptr.To(PortName), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(int32(s.Backend.Port())),
	}}, endpointPorts(version3Ports(s.MountPort))...)
}
