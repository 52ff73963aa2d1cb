package conntrack

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// Frontends are the addresses of Services, ClusterIP and port, with the servers to
// which each points. An address without a server is not in it.
type Frontends map[netip.AddrPort][]netip.AddrPort

// Entry is a TCP connection as the kernel tracks it: the address that the client connected to, and the server that
// answers.
type Entry struct{ Destination, Replier netip.AddrPort }

// IsStale reports whether the entry leads to a former server of its address. An address without servers keeps its entries,
// since its server may return.
func (f Frontends) IsStale(e Entry) bool {
	servers := f[e.Destination]
	return len(servers) > 0 && e.Replier != e.Destination && !slices.Contains(servers, e.Replier)
}

// NewFrontends joins Services and slices as kube-proxy does: by the slice's label and
// by the port's name. A server that still serves while it ends counts.
func NewFrontends(services []corev1.Service, endpointSlices []discoveryv1.EndpointSlice) Frontends {
	type key struct{ namespace, service, port string }
	servers := map[key][]netip.AddrPort{}
	for _, slice := range endpointSlices {
		for _, port := range slice.Ports {
			if ptr.Deref(port.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP || port.Port == nil {
				continue
			}
			k := key{slice.Namespace, slice.Labels[discoveryv1.LabelServiceName], ptr.Deref(port.Name, "")}
			for _, e := range slice.Endpoints {
				if !ptr.Deref(e.Conditions.Ready, true) && !ptr.Deref(e.Conditions.Serving, false) {
					continue
				}
				for _, text := range e.Addresses {
					if a, err := netip.ParseAddr(text); err == nil {
						servers[k] = append(servers[k], netip.AddrPortFrom(a.Unmap(), uint16(*port.Port)))
					}
				}
			}
		}
	}
	f := Frontends{}
	for _, s := range services {
		for _, ip := range s.Spec.ClusterIPs {
			a, err := netip.ParseAddr(ip)
			if err != nil { // None
				continue
			}
			for _, port := range s.Spec.Ports {
				address := netip.AddrPortFrom(a.Unmap(), uint16(port.Port))
				for _, server := range servers[key{s.Namespace, s.Name, port.Name}] {
					if server.Addr().Is4() == address.Addr().Is4() {
						f[address] = append(f[address], server)
					}
				}
			}
		}
	}
	for address, list := range f {
		slices.SortFunc(list, netip.AddrPort.Compare)
		f[address] = slices.Compact(list)
	}
	return f
}
