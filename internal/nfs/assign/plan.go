package assign

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

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
	sim := &Pool{slack: p.slack, backends: slices.Clone(p.backends), leads: p.leads, counts: maps.Clone(p.counts)}
	plan := Plan{}
	for name, n := range p.nodes {
		from := p.backendOf(n.address)
		if reason := leaves(from); reason != "" {
			m := Move{Node: name, Reason: reason, FromAddress: n.address}
			if from != nil {
				m.From = from.Addr
			}
			plan.Moves = append(plan.Moves, m)
			sim.count(n.address, -1)
		}
	}
	slices.SortFunc(plan.Moves, func(a, b Move) int { return cmp.Compare(a.Node, b.Node) })
	for i := range plan.Moves {
		m := &plan.Moves[i]
		if m.ToAddress = sim.choose(m.Node, p.nodes[m.Node].zone); m.ToAddress != "" {
			m.To = sim.backendOf(m.ToAddress).Addr
		}
		sim.count(cmp.Or(m.ToAddress, m.FromAddress), 1) // without a place, the node stays
	}
	plan.After = sim.Loads()
	return plan
}

// backendOf is the backend that an address leads to, nil if there is none.
func (p *Pool) backendOf(address string) *nfs.Backend {
	if i, ok := p.leads[address]; ok {
		return &p.backends[i].Backend
	}
	return nil
}

// Leaves is why a node or a slot should leave a backend; empty: it stays.
func Leaves(members []nfs.Backend, backend netip.AddrPort) Reason {
	if i := slices.IndexFunc(members, func(m nfs.Backend) bool { return m.Addr == backend }); i >= 0 {
		return leaves(&members[i])
	}
	return Gone
}

func leaves(m *nfs.Backend) Reason {
	switch {
	case m == nil:
		return Gone
	case m.Health == nfs.Down:
		return Down
	case m.Drain:
		return Draining
	}
	return ""
}
