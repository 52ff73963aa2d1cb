package nfs

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// FromEndpointSlices returns the backends of a Service of server pods: its ready endpoints of one address family, since a
// server with two addresses is one server. An endpoint that serves while it terminates is a draining backend.
//
// portName is the name of the NFS port in the slices; a slice with a single port, or with TCP port 2049,
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

// Port of NFS, where no port has the name (RFC 7530, section 3.1).
const nfsDefaultPort = 2049

// nfsPort is the port of that name, the only one, or else TCP port 2049.
func nfsPort(ports []discoveryv1.EndpointPort, name string) (uint16, bool) {
	var byNumber uint16
	for _, p := range ports {
		n := ptr.Deref(p.Port, 0)
		switch {
		case n <= 0 || n > 65535:
		case ptr.Deref(p.Name, "") == name || len(ports) == 1:
			return uint16(n), true
		case n == nfsDefaultPort && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP:
			byNumber = nfsDefaultPort
		}
	}
	return byNumber, byNumber > 0
}

// WhyNoServer says why the slices of a Service give no backend.
func WhyNoServer(list []discoveryv1.EndpointSlice, portName string) string {
	if len(list) == 0 {
		return "it has no EndpointSlices: there is no such Service in the namespace, or it has no selector, like one of type ExternalName"
	}
	var ports []string
	for _, slice := range list {
		if _, ok := nfsPort(slice.Ports, portName); ok {
			return "none of its pods is Ready"
		}
		for _, p := range slice.Ports {
			ports = append(ports, fmt.Sprintf("%q (%d/%s)", ptr.Deref(p.Name, ""), ptr.Deref(p.Port, 0), ptr.Deref(p.Protocol, corev1.ProtocolTCP)))
		}
	}
	slices.Sort(ports)
	if ports = slices.Compact(ports); len(ports) == 0 {
		return "none of its pods is Ready"
	}
	return fmt.Sprintf("none of its ports is named %q or is TCP port %d: it has %s; name the NFS port by spec.serverService.portName", portName, nfsDefaultPort, strings.Join(ports, ", "))
}
