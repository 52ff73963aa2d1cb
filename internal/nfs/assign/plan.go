package assign

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Reason is why a node or a slot should move.
type Reason string

const (
	// Gone: the service no longer has the backend.
	Gone Reason = "Gone"
	// Down: the backend fails its probes and is out.
	Down Reason = "Down"
	// Draining: the operator wants the backend empty.
	Draining Reason = "Draining"
	// Excess: a slot's backend has more than ⌈average × (1 + slack)⌉, or another has nothing.
	Excess Reason = "Excess"
	// Unused: no node uses the slot, so moving it costs nothing.
	Unused Reason = "Unused"
	// New: the slot points nowhere yet.
	New Reason = "New"
)

// Move of a node from one address to another. From is the backend that it leaves,
// not valid for reason Gone. To is empty where no backend takes the node.
type Move struct {
	Node                   string
	Reason                 Reason
	FromAddress, ToAddress string
	From, To               netip.AddrPort
}

// Plan is what should move, and the distribution afterwards.
type Plan struct {
	Moves []Move // by name of the node
	After []Load
}

// Plan returns what should move: nodes whose backend is gone, down or draining. Each
// gets the address that Attach would give it. It changes nothing. A node that has
// mounted a backend's own address (PerNode) can only move by remounting: it moves with
// its next first volume.
func (p *Pool) Plan() Plan {
	sim := &Pool{
		slack: p.slack, backends: slices.Clone(p.backends), zones: p.zones,
		addresses: addressTable{index: p.addresses.index, list: slices.Clone(p.addresses.list)},
	}
	plan := Plan{}
	for name, n := range p.nodes {
		if reason := p.leaves(n.address); reason != "" {
			plan.Moves = append(plan.Moves, Move{Node: name, Reason: reason})
			sim.count(n.address, -1)
		}
	}
	slices.SortFunc(plan.Moves, func(a, b Move) int { return cmp.Compare(a.Node, b.Node) })
	for i := range plan.Moves {
		sim.place(&plan.Moves[i], p.nodes[plan.Moves[i].Node])
	}
	plan.After = sim.Loads()
	return plan
}

func (p *Pool) leaves(address int32) Reason {
	b := p.addresses.list[address].backend
	switch {
	case b < 0:
		return Gone
	case p.backends[b].Health == nfs.Down:
		return Down
	case p.backends[b].Drain:
		return Draining
	}
	return ""
}

// place moves a node in the copy of a pool. Without a place, the node stays.
func (p *Pool) place(m *Move, n entry) {
	from := p.addresses.list[n.address]
	m.FromAddress = from.text
	if from.backend >= 0 {
		m.From = p.backends[from.backend].Addr
	}
	to := p.choose(xxhash.Sum64String(m.Node), n.zone)
	if to < 0 {
		p.count(n.address, 1)
		return
	}
	m.ToAddress = p.addresses.list[to].text
	m.To = p.backends[p.addresses.list[to].backend].Addr
	p.count(to, 1)
}
