package assign

import (
	"net/netip"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Placement is where a node is.
type Placement struct {
	Address string
	// Backend that the address leads to; not valid where it leads nowhere.
	Backend netip.AddrPort
	// Volumes of the service that the node has.
	Volumes int
	// Split: volumes of the node have different addresses. It happens when its backend
	// went down, or two leaders attached at once. It ends when the volumes are detached.
	Split bool
}

// Load is how many nodes a backend has.
type Load struct {
	nfs.Backend
	Nodes int
}

// Node returns where a node is; false if it has no volume of the service.
func (p *Pool) Node(name string) (Placement, bool) {
	n := p.nodes[name]
	if n == nil {
		return Placement{}, false
	}
	at := Placement{Address: n.address, Volumes: len(n.volumes), Split: isSplit(n.volumes)}
	if b := p.backendOf(n.address); b != nil {
		at.Backend = b.Addr
	}
	return at, true
}

// Nodes are all nodes, by name.
func (p *Pool) Nodes() map[string]Placement {
	all := make(map[string]Placement, len(p.nodes))
	for name := range p.nodes {
		all[name], _ = p.Node(name)
	}
	return all
}

// Len is the number of nodes.
func (p *Pool) Len() int { return len(p.nodes) }

// Loads returns the backends with the number of their nodes, sorted by address.
func (p *Pool) Loads() []Load {
	loads := make([]Load, len(p.backends))
	for i, b := range p.backends {
		loads[i] = Load{Backend: b.Backend, Nodes: b.nodes}
	}
	return loads
}

// Idle are the healthy backends that have no node although another has more for its
// weight than they would have with one.
func Idle(loads []Load) []netip.AddrPort {
	most := Load{Backend: nfs.Backend{Weight: 1}}
	for _, l := range loads {
		if int64(l.Nodes)*int64(most.Weight) > int64(most.Nodes)*int64(l.Weight) {
			most = l
		}
	}
	var idle []netip.AddrPort
	for _, l := range loads {
		if l.Nodes == 0 && !l.Drain && l.Health == nfs.Healthy && int64(most.Nodes)*int64(l.Weight) > int64(most.Weight) {
			idle = append(idle, l.Addr)
		}
	}
	return idle
}

// AddressNodes is how many nodes use an address.
func (p *Pool) AddressNodes(address string) int { return p.counts[address] }

// Slots fills in who uses slots, whose addresses are given by index.
func (p *Pool) Slots(slots []Slot, addresses []string) {
	mounted := map[string]bool{}
	for _, n := range p.nodes {
		for _, h := range n.volumes {
			mounted[h.address] = true
		}
	}
	for s := range slots {
		slots[s].Nodes, slots[s].Mounted = p.counts[addresses[s]], mounted[addresses[s]]
	}
}
