package nfs

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Limits of a backend's weight. The highest keeps products of weights and nodes within 64 bits.
const (
	DefaultWeight = 1
	MaxWeight     = 1000
)

// Source is where a backend comes from.
type Source string

const (
	// Static backends are listed in the NFSService.
	Static Source = "static"
	// Service backends are the endpoints of a Service of server pods.
	Service Source = "service"
)

// Backend is one NFS server. Its address with port is its identity.
type Backend struct {
	Addr netip.AddrPort
	// Weight is the backend's share of the nodes, relative to the others: 1 to MaxWeight.
	Weight int32
	// Zone of the server (topology.kubernetes.io/zone); empty if unknown.
	Zone string
	// Drain: the backend keeps serving, gets no new nodes, and its nodes should move.
	Drain  bool
	Source Source
	// Health by the probes.
	Health Health
}

// Address is the backend's form in PublishContext and attachment metadata: the IP, and the port unless it is DefaultPort, as
// in the GKE driver. ParseEndpoint with DefaultPort reads it.
func (b Backend) Address() string {
	if b.Addr.Port() == DefaultPort {
		return b.Addr.Addr().String()
	}
	return b.Addr.String()
}

// Open reports whether new nodes may go to the backend.
func (b Backend) Open() bool { return !b.Drain && b.Health != Down }

// ParseBackends reads the static backends of a service. field is the path of the
// list; port is the service's. It returns what is well formed, sorted by address,
// and all problems.
func ParseBackends(field string, specs []v1alpha1.NFSBackend, port int32) ([]Backend, Problems) {
	var problems Problems
	var backends []Backend
	seen := map[netip.AddrPort]int{}
	for i, spec := range specs {
		path := Index(field, i)
		address, err := ParseAddress(spec.Address)
		if err != nil {
			problems.Add(path+".address", "%s", err)
			continue
		}
		endpoint := netip.AddrPortFrom(address, uint16(cmp.Or(spec.Port, port, DefaultPort)))
		if first, ok := seen[endpoint]; ok {
			problems.Add(path+".address", "%s is also %s: remove one of them", endpoint, Index(field, first))
			continue
		}
		seen[endpoint] = i
		backends = append(backends, Backend{Addr: endpoint, Weight: ptr.Deref(spec.Weight, DefaultWeight), Zone: spec.Zone, Drain: spec.Drain, Source: Static})
	}
	sortBackends(backends)
	return backends, problems
}

// Merge joins the backends of several sources, sorted by address. If two sources name one backend, the earlier source
// decides weight and zone, and the backend drains if any source drains it. Put the static source first: an operator's
// weight then wins over a discovered one.
func Merge(sources ...[]Backend) []Backend {
	merged := map[netip.AddrPort]*Backend{}
	var all []*Backend
	for _, source := range sources {
		for _, b := range source {
			have := merged[b.Addr]
			if have == nil {
				merged[b.Addr] = &b
				all = append(all, &b)
				continue
			}
			have.Drain = have.Drain || b.Drain
			have.Weight = cmp.Or(have.Weight, b.Weight)
			have.Zone = cmp.Or(have.Zone, b.Zone)
		}
	}
	var backends []Backend
	for _, b := range all {
		b.Weight = cmp.Or(b.Weight, DefaultWeight)
		backends = append(backends, *b)
	}
	sortBackends(backends)
	return backends
}

func sortBackends(backends []Backend) {
	slices.SortFunc(backends, func(a, b Backend) int { return a.Addr.Compare(b.Addr) })
}
