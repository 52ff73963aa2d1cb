package assign

import (
	"iter"
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
	nfs.Member
	Nodes int
}

// Node returns where a node is; false if it has no volume of the service.
func (p *Pool) Node(name string) (Placement, bool) {
	n, ok := p.nodes[name]
	if !ok {
		return Placement{}, false
	}
	return p.placement(name, n), true
}

func (p *Pool) placement(name string, n entry) Placement {
	a := p.addresses.list[n.address]
	_, split := p.split[name]
	at := Placement{Address: a.text, Volumes: len(n.volumes), Split: split}
	if a.backend >= 0 {
		at.Backend = p.backends[a.backend].Addr
	}
	return at
}

// Nodes yields all nodes, in no order.
func (p *Pool) Nodes() iter.Seq2[string, Placement] {
	return func(yield func(string, Placement) bool) {
		for name, n := range p.nodes {
			if !yield(name, p.placement(name, n)) {
				return
			}
		}
	}
}

// Len is the number of nodes.
func (p *Pool) Len() int { return len(p.nodes) }

// Loads returns the backends with the number of their nodes, sorted by address.
func (p *Pool) Loads() []Load {
	loads := make([]Load, len(p.backends))
	for i, b := range p.backends {
		loads[i] = Load{Member: b.Member, Nodes: int(b.nodes)}
	}
	return loads
}

// AddressNodes is how many nodes use an address: the nodes of a slot.
func (p *Pool) AddressNodes(address string) int {
	if i, ok := p.addresses.index[address]; ok {
		return int(p.addresses.list[i].nodes)
	}
	return 0
}
