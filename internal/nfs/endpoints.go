package nfs

import (
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// FromEndpointSlices returns the backends of a Service of server pods: its ready endpoints of one address family, since a
// server with two addresses is one server. An endpoint that serves while it terminates is a draining backend.
//
// portName is the name of the NFS port in the slices; a slice with a single port
// needs no name. As kube-proxy does, it reads the first address of an endpoint and
// takes missing conditions for true (discovery.k8s.io/v1, EndpointConditions).
func FromEndpointSlices(list []discoveryv1.EndpointSlice, family discoveryv1.AddressType, portName string) []Backend {
	var backends []Backend
	for i := range list {
		slice := &list[i]
		port, ok := nfsPort(slice.Ports, portName)
		if slice.AddressType != family || !ok {
			continue
		}
		for _, e := range slice.Endpoints {
			ready, terminating := ptr.Deref(e.Conditions.Ready, true), ptr.Deref(e.Conditions.Terminating, false)
			serving := ptr.Deref(e.Conditions.Serving, ready)
			if !ready && (!serving || !terminating) || len(e.Addresses) == 0 {
				continue
			}
			address, err := ParseAddress(e.Addresses[0])
			if err != nil {
				continue // the API admits none of these
			}
			backends = append(backends, Backend{
				Addr: netip.AddrPortFrom(address, port), Weight: DefaultWeight, Zone: ptr.Deref(e.Zone, ""), Drain: terminating, Source: Service,
			})
		}
	}
	return Merge(backends) // a pod may be in two slices while it moves from one to the other
}

func nfsPort(ports []discoveryv1.EndpointPort, name string) (uint16, bool) {
	for _, p := range ports {
		if n := ptr.Deref(p.Port, 0); n > 0 && n <= 65535 && (ptr.Deref(p.Name, "") == name || len(ports) == 1) {
			return uint16(n), true
		}
	}
	return 0, false
}
