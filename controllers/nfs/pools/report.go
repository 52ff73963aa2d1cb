package pools

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/internal/nfs/assign"
)

// Summary is the part of a service's status about its nodes.
type Summary struct {
	Nodes int
	Loads []assign.Load
	// Plan of moves that need a remount, or a server's return.
	Plan assign.Plan
}

// Summary of a service.
func (p *Pools) Summary(service types.NamespacedName) Summary {
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.pools[service]
	if have == nil {
		return Summary{}
	}
	return Summary{Nodes: have.Len(), Loads: have.Loads(), Plan: have.Plan()}
}

// AddressNodes is how many nodes of a service use each of the addresses.
func (p *Pools) AddressNodes(service types.NamespacedName, addresses []string) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := make([]int, len(addresses))
	if have := p.pools[service]; have != nil {
		for i, a := range addresses {
			nodes[i] = have.AddressNodes(a)
		}
	}
	return nodes
}

// Slots fills in who uses slots of a service.
func (p *Pools) Slots(service types.NamespacedName, slots []assign.Slot, addresses []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have := p.pools[service]; have != nil {
		have.Slots(slots, addresses)
	}
}

// Node returns where a node is; false if it has no volume of the service.
func (p *Pools) Node(service types.NamespacedName, node string) (assign.Placement, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.pools[service]
	if have == nil {
		return assign.Placement{}, false
	}
	return have.Node(node)
}

// Placements returns all nodes of a service.
func (p *Pools) Placements(service types.NamespacedName) map[string]assign.Placement {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]assign.Placement{}
	if have := p.pools[service]; have != nil {
		for name, at := range have.Nodes() {
			all[name] = at
		}
	}
	return all
}
