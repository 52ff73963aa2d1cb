package assign

import (
	"cmp"
	"maps"
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
	// Excess: the backend has more than ⌈average × (1 + slack)⌉.
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

// Plan is what a rebalance would move, and the distribution afterwards.
type Plan struct {
	Moves []Move // orphans first, then the excess; each by name of the node
	After []Load
}

// Plan returns what should move: nodes whose backend is gone, down or draining, and
// if excess is asked for, what backends have above ⌈average × (1 + slack)⌉, with
// the fewest moves that reach it. It changes nothing. A node that has mounted a
// backend's own address (PerNode) can only move by remounting: it moves with its
// next first volume. Nodes go to healthy backends; to others
// only where none is healthy.
func (p *Pool) Plan(excess bool) Plan {
	orphans, staying := p.orphans()
	sim := p.sketch(orphans)
	plan := Plan{}
	for _, o := range orphans {
		sim.place(p, &plan, o)
	}
	if excess {
		for _, o := range p.excess(sim, staying) {
			sim.place(p, &plan, o)
		}
	}
	plan.After = sim.Loads()
	return plan
}

// mover is a node that should move.
type mover struct {
	name   string
	node   entry
	reason Reason
}

func byName(a, b mover) int { return cmp.Compare(a.name, b.name) }

// orphans returns the nodes that cannot or should not stay, and how many backends
// keep of theirs.
func (p *Pool) orphans() ([]mover, []int64) {
	var orphans []mover
	staying := make([]int64, len(p.backends))
	for name, n := range p.nodes {
		if reason := p.leaves(n.address); reason != "" {
			orphans = append(orphans, mover{name, n, reason})
		} else {
			staying[p.addresses.list[n.address].backend]++
		}
	}
	slices.SortFunc(orphans, byName)
	return orphans, staying
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

// sketch is a copy of the pool without nodes, with a limit for each backend: the
// best of the open ones share what they have and the orphans; the rest take nothing.
func (p *Pool) sketch(orphans []mover) *Pool {
	sim := &Pool{
		slack: p.slack, backends: slices.Clone(p.backends), zones: p.zones,
		addresses: addressTable{index: p.addresses.index, list: slices.Clone(p.addresses.list)},
		limits:    make([]int64, len(p.backends)),
	}
	best := rank(nfs.Down)
	for _, b := range p.backends {
		if b.Open() && len(b.addresses) > 0 {
			best = min(best, rank(b.Health))
		}
	}
	takes := func(b backend) bool { return b.Open() && len(b.addresses) > 0 && rank(b.Health) == best }
	nodes, weights := int64(len(orphans)), int64(0)
	for _, b := range p.backends {
		if takes(b) {
			nodes += b.nodes
			weights += int64(b.Weight)
		}
	}
	for i, b := range p.backends {
		if takes(b) {
			sim.limits[i] = limit(nodes, weights, int64(b.Weight), p.slack)
		}
	}
	sim.build()
	return sim
}

// excess returns the nodes above their backend's limit: from other zones first, then by name.
func (p *Pool) excess(sim *Pool, staying []int64) []mover {
	over := map[int32][]mover{}
	for i, most := range sim.limits {
		if most > 0 && staying[i] > most {
			over[int32(i)] = nil
		}
	}
	if len(over) == 0 {
		return nil
	}
	for name, n := range p.nodes {
		b := p.addresses.list[n.address].backend
		if _, ok := over[b]; ok {
			over[b] = append(over[b], mover{name, n, Excess})
		}
	}
	var movers []mover
	for _, b := range slices.Sorted(maps.Keys(over)) {
		zone := p.backends[b].zone
		slices.SortFunc(over[b], func(x, y mover) int {
			return cmp.Or(compareBool(x.node.zone == zone, y.node.zone == zone), byName(x, y))
		})
		movers = append(movers, over[b][:staying[b]-sim.limits[b]]...)
	}
	slices.SortFunc(movers, byName)
	return movers
}

// place moves a node in the sketch and appends the move to the plan.
func (sim *Pool) place(p *Pool, plan *Plan, o mover) {
	from := p.addresses.list[o.node.address]
	move := Move{Node: o.name, Reason: o.reason, FromAddress: from.text}
	if from.backend >= 0 {
		move.From = p.backends[from.backend].Addr
	}
	if to := sim.choose(xxhash.Sum64String(o.name), o.node.zone); to >= 0 {
		move.ToAddress = sim.addresses.list[to].text
		move.To = sim.backends[sim.addresses.list[to].backend].Addr
		sim.count(o.node.address, -1)
		sim.count(to, 1)
	}
	plan.Moves = append(plan.Moves, move)
}
