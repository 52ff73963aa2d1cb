package plan

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/nfs/spec"
)

// Plan is what a change of backends would do.
type Plan struct {
	// Backends now and then, sorted by address.
	Backends []Backend
	// Slots that are pointed to another backend, by index.
	Slots []assign.SlotMove
	// Moves of nodes, by name.
	Moves []Move
	// Notes name the steps that are not edits of spec.backends.
	Notes []string
}

// Backend as it is and as it would be.
type Backend struct {
	Now, Then *nfs.Member // nil: it is not there
	// NodesNow, and NodesThen once all moves are done.
	NodesNow, NodesThen int
}

// Addr is the backend's address.
func (b Backend) Addr() netip.AddrPort {
	if b.Now != nil {
		return b.Now.Addr
	}
	return b.Then.Addr
}

// Move is a node that leaves its backend.
type Move struct {
	Node   string
	Reason assign.Reason
	// From is not valid where the node's address leads nowhere; To where no backend takes it.
	From, To netip.AddrPort
	// Remount: the node keeps its mount of From until its volumes are detached.
	// Otherwise its address is pointed to To, and the mount keeps working.
	Remount bool
	// Pending: the node has to leave From with or without the change.
	Pending bool
}

// Waits reports whether the move waits for the node to unmount, or for an open backend.
func (m Move) Waits() bool { return m.Remount || !m.To.IsValid() }

// Outcome of a plan.
type Outcome string

// Outcomes, as fairlead plan has them.
const (
	Nothing Outcome = "nothing"
	Now     Outcome = "now"
	Waits   Outcome = "waits"
)

// Outcome reports whether nothing moves, all moves are done at once, or some wait.
// Moves that are pending without the change do not count.
func (p Plan) Outcome() Outcome {
	own := slices.DeleteFunc(slices.Clone(p.Moves), func(m Move) bool { return m.Pending })
	switch {
	case slices.ContainsFunc(own, Move.Waits):
		return Waits
	case len(own)+len(p.Slots) > 0:
		return Now
	}
	return Nothing
}

// Change plans a change of the service's backends. New backends count as healthy.
// It reports all problems of the change: those of nfs.Change.Apply, and those that
// admission would find in the spec with the new backends.
// An empty change plans what the controller and the nodes still have to do.
func (s *State) Change(c nfs.Change) (Plan, nfs.Problems) {
	after, problems := c.Apply(s.members, s.Service.Port)
	problems = append(problems, s.admission(c)...)
	if len(problems) > 0 {
		return Plan{}, problems
	}
	plan := s.to(after)
	plan.Notes = s.notes(c)
	if len(c.Add)+len(c.Drain)+len(c.Remove)+len(c.Weights) > 0 {
		pending := map[string]bool{}
		for _, m := range s.to(s.members).Moves {
			pending[m.Node] = m.Waits()
		}
		for i, m := range plan.Moves {
			plan.Moves[i].Pending = pending[m.Node] && m.Waits()
		}
	}
	return plan, nil
}

// to plans the change to other members.
func (s *State) to(after []nfs.Member) Plan {
	plan := Plan{}
	before := s.placements()
	slots, stable := slices.Clone(s.slots), s.object.Status.Backend
	switch s.Service.Exposure {
	case nfs.PerNodeStable:
		plan.Slots = assign.Repoint(slots, spec.Reachable(&s.object.Status, after), s.Service.SlotRules())
		for _, m := range plan.Slots {
			if m.Slot == len(slots) {
				slots = append(slots, assign.Slot{})
			}
			slots[m.Slot].Backend = m.To
		}
	case nfs.Stable:
		stable = s.choose(after)
	}
	then := assign.NewPool(s.Service.Slack)
	then.SetTargets(s.targets(after, slots, stable))
	then.Rebuild(s.nodes)
	plan.Moves = repointed(before, then, after)
	rest := then.Plan()
	for _, m := range rest.Moves {
		plan.Moves = append(plan.Moves, Move{Node: m.Node, Reason: m.Reason, From: before[m.Node].Backend, To: m.To, Remount: !s.repoints(m.FromAddress)})
	}
	slices.SortFunc(plan.Moves, func(a, b Move) int { return strings.Compare(a.Node, b.Node) })
	plan.Backends = s.backends(after, rest.After)
	return plan
}

// repoints reports whether Fairlead can point an address to another backend.
func (s *State) repoints(address string) bool {
	if s.Service.Exposure == nfs.Stable {
		return address != "" && address == spec.Published(s.object.Status.Address, s.Service.Port)
	}
	return s.slot(address) >= 0
}

func (s *State) placements() map[string]assign.Placement {
	all := map[string]assign.Placement{}
	for name, at := range s.pool.Nodes() {
		all[name] = at
	}
	return all
}

// repointed are the nodes whose address leads to another backend that keeps them.
func repointed(before map[string]assign.Placement, then *assign.Pool, after []nfs.Member) []Move {
	var moves []Move
	for name, now := range then.Nodes() {
		from := before[name].Backend
		if !now.Backend.IsValid() || now.Backend == from || leaves(after, now.Backend) != "" {
			continue
		}
		reason := leaves(after, from)
		if i := slices.IndexFunc(after, func(m nfs.Member) bool { return m.Addr == from }); reason == "" && after[i].Health == nfs.Failing {
			reason = assign.Down
		} else if reason == "" {
			reason = assign.Excess
		}
		moves = append(moves, Move{Node: name, Reason: reason, From: from, To: now.Backend})
	}
	return moves
}

// choose is the backend that the Stable address would point to.
func (s *State) choose(after []nfs.Member) string {
	var family publish.Family
	if a, err := netip.ParseAddr(s.object.Status.Address); err == nil {
		family = publish.FamilyOf(a)
	}
	current, _ := netip.ParseAddrPort(s.object.Status.Backend)
	choice := publish.ChooseStable(s.object.Namespace+"/"+s.object.Name, family, current, after)
	if !choice.Backend.IsValid() {
		return ""
	}
	return choice.Backend.String()
}

// admission reports what admission would newly find in the spec with the added backends.
func (s *State) admission(c nfs.Change) nfs.Problems {
	changed := s.object.DeepCopy()
	for _, b := range c.Add {
		changed.Spec.Backends = append(changed.Spec.Backends, spec.FromBackend(b))
	}
	_, found := spec.Read(changed)
	var problems nfs.Problems
	for _, p := range found {
		// Problems of the added backends are already reported as add[…].
		if !slices.Contains(s.problems, p) && !strings.HasPrefix(p.Field, "spec.backends[") {
			problems = append(problems, p)
		}
	}
	return problems
}

func (s *State) backends(after []nfs.Member, then []assign.Load) []Backend {
	byAddr := map[netip.AddrPort]*Backend{}
	get := func(a netip.AddrPort) *Backend {
		if byAddr[a] == nil {
			byAddr[a] = &Backend{}
		}
		return byAddr[a]
	}
	for _, l := range s.pool.Loads() {
		b := get(l.Addr)
		b.Now, b.NodesNow = &l.Member, l.Nodes
	}
	for _, m := range after {
		get(m.Addr).Then = &m
	}
	for _, l := range then {
		get(l.Addr).NodesThen = l.Nodes
	}
	var list []Backend
	for _, b := range byAddr {
		list = append(list, *b)
	}
	slices.SortFunc(list, func(a, b Backend) int { return a.Addr().Compare(b.Addr()) })
	return list
}
