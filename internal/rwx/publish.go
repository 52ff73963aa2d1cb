package rwx

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/multus"
)

// Marks on what Fairlead publishes.
const (
	// SliceManager is the value of endpointslice.kubernetes.io/managed-by on
	// Fairlead's slices: Kubernetes' own controllers leave them alone.
	SliceManager = "fairlead.io"
	// EndpointsManagedBy is the label that says the same of a classic Endpoints
	// object (k8s.io/kubernetes pkg/controller/endpoint has a value of its own for it).
	EndpointsManagedBy = "endpoints.kubernetes.io/managed-by"
)

// Published is one address under which a volume's clients find its server.
type Published struct {
	Address netip.Addr
	// Pod that has the address, and the node that it runs on.
	Pod, UID, Node string
}

// Publish returns the addresses of a headless Service, sorted: those that Multus reports for the
// volume's network, on Ready server pods that do not terminate. The pod's own address is never a
// substitute: it would leave the storage network unnoticed.
// fallback is the network of a Service without a record; see Service.Network.
//
// If two pods of the volume have one address, as when a fixed address moves, the newer pod gets it. An address that an older pod
// of others reports too is not published: clients would reach that pod, or neither.
//
// Source: proposal "Storage Network For RWX Volume", Kubernetes endpoint
// controller, which takes any pod with the label, and the pod IP where Multus is late.
func Publish(service Service, servers []Server, fallback multus.Attachment) []Published {
	network := service.Network(fallback)
	servers = slices.SortedFunc(slices.Values(servers), func(a, b Server) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.UID, b.UID))
	})
	var published []Published
	for _, server := range servers {
		if server.Volume != service.Volume || !server.Ready || server.Terminating || server.Clash.Older {
			continue
		}
		addresses, err := multus.AddressesOn(server.Reported, server.interfaceOn(network))
		if err != nil {
			continue // a half-read status may lack addresses
		}
		for _, address := range server.withoutSpare(addresses) {
			address = address.Unmap()
			taken := func(p Published) bool { return p.Address == address }
			if !publishable(address) || slices.ContainsFunc(published, taken) {
				continue
			}
			published = append(published, Published{Address: address, Pod: server.Pod, UID: server.UID, Node: server.Node})
		}
	}
	slices.SortFunc(published, func(a, b Published) int { return a.Address.Compare(b.Address) })
	return published
}

// withoutSpare drops addresses of a family that has a fixed address: whereabouts always assigns an address of its range,
// too, and that address does not follow the server to another node.
func (s Server) withoutSpare(addresses []netip.Addr) []netip.Addr {
	fixed := func(a netip.Addr) bool { return slices.Contains(s.Fixed, a.Unmap()) }
	var kept []netip.Addr
	for _, a := range addresses {
		sameFamily := func(other netip.Addr) bool { return fixed(other) && other.Unmap().Is4() == a.Unmap().Is4() }
		if fixed(a) || !slices.ContainsFunc(addresses, sameFamily) {
			kept = append(kept, a)
		}
	}
	return kept
}

// interfaceOn is the server's interface on the network. Running servers keep their interface when
// an upgrade of the storage system names another.
func (s Server) interfaceOn(network multus.Attachment) multus.Attachment {
	if s.IsOn(network) {
		return network
	}
	for _, a := range append([]multus.Attachment{s.Network}, s.Networks...) {
		if a.Network == network.Network {
			return a
		}
	}
	return network
}

// publishable leaves out addresses that no other node reaches, or that the API
// refuses in an EndpointSlice: loopback, link-local and multicast addresses.
func publishable(a netip.Addr) bool { return a.IsGlobalUnicast() && a.Zone() == "" }

// ServiceEndpoint is the NFS URL of a volume whose Service is headless:
// nfs://<service>.<namespace>.svc.<cluster domain>/<volume>.
func ServiceEndpoint(service, namespace, clusterDomain, volume string) string {
	return fmt.Sprintf("nfs://%s.%s.svc.%s/%s", service, namespace, clusterDomain, volume)
}

// addressEndpoint is the NFS URL of a volume whose Service has a cluster IP.
func addressEndpoint(address netip.Addr, volume string) string {
	if address.Is6() {
		return fmt.Sprintf("nfs://[%s]/%s", address, volume)
	}
	return fmt.Sprintf("nfs://%s/%s", address, volume)
}

// Endpoint is the URL that follows from a volume's Service, so that the two can't
// disagree. ok is false when the Service has neither form, for example no
// cluster IP yet.
func Endpoint(s Service, clusterDomain string) (url string, ok bool) {
	if s.Headless() {
		return ServiceEndpoint(s.Name, s.Namespace, clusterDomain, s.Volume), true
	}
	address, err := netip.ParseAddr(s.ClusterIP)
	if err != nil {
		return "", false
	}
	return addressEndpoint(address, s.Volume), true
}

// EndpointHost returns the host of an NFS URL, "" when it has none.
func EndpointHost(url string) string {
	rest, found := strings.CutPrefix(url, "nfs://")
	if !found {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	return strings.Trim(host, "[]")
}
