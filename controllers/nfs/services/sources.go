package services

import (
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// defaultPortName is the port of NFS in a Service of server pods (NFSServerService.PortName).
const defaultPortName = publish.PortName

// discovered are the backends in slices of one family.
func discovered(list []discoveryv1.EndpointSlice, family discoveryv1.AddressType, portName string) []nfs.Backend {
	if portName == "" {
		portName = defaultPortName
	}
	return nfs.FromEndpointSlices(list, family, portName)
}

// family of the servers to discover, since a server with two addresses is one server. In order: the family of the recorded
// ClusterIPs, of the static backends, of the recorded backends, of the first slice.
func (p *pass) family(list []discoveryv1.EndpointSlice) discoveryv1.AddressType {
	var texts []string
	for _, s := range p.service.Status.Slots {
		texts = append(texts, s.Address)
	}
	texts = append(texts, p.service.Status.Address)
	for _, b := range p.spec.Backends {
		texts = append(texts, b.Addr.Addr().String())
	}
	for _, b := range p.service.Status.Backends {
		if a, err := netip.ParseAddrPort(b.Address); err == nil {
			texts = append(texts, a.Addr().String())
		}
	}
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil {
			return discoveryv1.AddressType(publish.FamilyOf(a))
		}
	}
	has := func(family discoveryv1.AddressType) bool {
		return slices.ContainsFunc(list, func(s discoveryv1.EndpointSlice) bool { return s.AddressType == family && len(s.Endpoints) > 0 })
	}
	if !has(discoveryv1.AddressTypeIPv4) && has(discoveryv1.AddressTypeIPv6) {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}
