package plan

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
)

// Plan is what a change of backends would do. Its JSON is what `fairlead nfs plan -o json` prints: fields are added,
// never renamed or removed; lists are whole, and never null.
type Plan struct {
	Service  string       `json:"service"`
	Exposure nfs.Exposure `json:"exposure"`
	Outcome  Outcome      `json:"outcome"`
	// Backends now and then, sorted by address.
	Backends []Backend `json:"backends"`
	// Slots that are pointed to another backend, by index.
	Slots []assign.SlotMove `json:"slots"`
	// Moves of nodes, by name.
	Moves []Move `json:"moves"`
	// Notes name the steps that are not edits of spec.backends.
	Notes []string `json:"notes"`
}

// Backend as it is and as it would be.
type Backend struct {
	Address netip.AddrPort `json:"address"`
	// Change: added, removed, drained, weighed, or empty.
	Change string `json:"change"`
	Health string `json:"health"`
	Weight int32  `json:"weight"`
	Drain  bool   `json:"drain"`
	// NodesNow is the number of nodes now, NodesThen the number after all moves.
	NodesNow  int `json:"nodesNow"`
	NodesThen int `json:"nodesThen"`
}

// Move is a node that leaves its backend.
type Move struct {
	Node string `json:"node"`
	// From is not valid where the node's address leads nowhere; To where no backend takes it.
	From   netip.AddrPort `json:"from"`
	To     netip.AddrPort `json:"to"`
	Reason assign.Reason  `json:"reason"`
	// Remount: the node keeps its mount of From until its volumes are detached.
	// Otherwise its address is pointed to To, and the mount keeps working.
	Remount bool `json:"remount"`
	// Pending: the node has to leave From with or without the change.
	Pending bool `json:"pending"`
	// How the node moves, in words.
	How string `json:"how"`
}

// waits reports whether the move waits for the node to unmount, or for an open backend.
func (m Move) waits() bool { return m.Remount || !m.To.IsValid() }

func (m Move) how() string {
	waits := "waits: "
	if m.Pending {
		waits = "waits, with or without the change: "
	}
	switch {
	case !m.To.IsValid():
		return waits + "no server takes the node"
	case m.Remount:
		return waits + "the node must remount; delete its pods that use the volumes"
	}
	return "at once, without a remount"
}

// Outcome of a plan: whether nothing moves, all moves are done at once, or some wait. Moves that are pending without the
// change do not count.
type Outcome string

// Outcomes, as fairlead plan has them.
const (
	Nothing Outcome = "nothing"
	Now     Outcome = "now"
	Waits   Outcome = "waits"
)

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
	pending := map[string]bool{}
	if len(c.Add)+len(c.Drain)+len(c.Remove)+len(c.Weights) > 0 {
		for _, m := range s.to(s.members).Moves {
			pending[m.Node] = m.waits()
		}
	}
	for i := range plan.Moves {
		m := &plan.Moves[i]
		m.Pending = pending[m.Node] && m.waits()
		m.How = m.how()
		switch {
		case m.Pending:
		case m.waits():
			plan.Outcome = Waits
		case plan.Outcome == Nothing:
			plan.Outcome = Now
		}
	}
	if plan.Outcome == Nothing && len(plan.Slots) > 0 {
		plan.Outcome = Now
	}
	return plan, nil
}

// to plans the change to other members.
func (s *State) to(after []nfs.Backend) Plan {
	plan := Plan{
		Service: s.object.Namespace + "/" + s.object.Name, Exposure: s.Service.Exposure, Outcome: Nothing, Slots: []assign.SlotMove{}, Moves: []Move{},
	}
	before := s.pool.Nodes()
	slots, stable := slices.Clone(s.Slots), s.object.Status.Backend
	switch s.Service.Exposure {
	case nfs.PerNodeStable:
		plan.Slots = append(plan.Slots, assign.Repoint(slots, definition.Reachable(&s.object.Status, after), s.Service.SlotRules())...)
		for _, m := range plan.Slots {
			if m.Slot == len(slots) {
				slots = append(slots, assign.Slot{})
			}
			slots[m.Slot].Backend = m.To
		}
	case nfs.Stable:
		stable = addrText(definition.ChooseStable(s.object, after))
	}
	then := s.poolOf(after, slots, stable)
	for name, now := range then.Nodes() {
		if from := before[name].Backend; now.Backend.IsValid() && now.Backend != from && assign.Leaves(after, now.Backend) == "" {
			plan.Moves = append(plan.Moves, Move{Node: name, Reason: repointed(after, from), From: from, To: now.Backend})
		}
	}
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
	_, slot := s.slotOf[address]
	return slot || s.Service.Exposure == nfs.Stable && address == definition.Published(s.object.Status.Address, s.Service.Port)
}

// repointed is why an address that nodes have mounted no longer leads to a backend.
func repointed(after []nfs.Backend, from netip.AddrPort) assign.Reason {
	reason := assign.Excess
	if slices.ContainsFunc(after, func(m nfs.Backend) bool { return m.Addr == from && m.Health == nfs.Failing }) {
		reason = assign.Down
	}
	return cmp.Or(assign.Leaves(after, from), reason)
}

// admission reports what admission would newly find in the spec with the added backends.
func (s *State) admission(c nfs.Change) nfs.Problems {
	changed := s.object.DeepCopy()
	changed.Spec.Backends = append(changed.Spec.Backends, c.Add...)
	_, found := definition.Read(changed)
	return slices.DeleteFunc(found, func(p nfs.Problem) bool {
		// Problems of the added backends are already reported as add[…].
		return slices.Contains(s.Problems, p) || strings.HasPrefix(p.Field, "spec.backends[")
	})
}

func (s *State) backends(after []nfs.Backend, then []assign.Load) []Backend {
	list := []Backend{}
	for _, l := range s.pool.Loads() {
		b := Backend{Address: l.Addr, Change: "removed", Health: l.Health.String(), Weight: l.Weight, Drain: l.Drain, NodesNow: l.Nodes}
		if i := slices.IndexFunc(after, func(m nfs.Backend) bool { return m.Addr == l.Addr }); i >= 0 {
			b.Change = ""
			switch m := after[i]; {
			case m.Drain && !l.Drain:
				b.Change = "drained"
			case m.Weight != l.Weight:
				b.Change = "weighed"
			}
		}
		list = append(list, b)
	}
	for _, l := range then {
		i := slices.IndexFunc(list, func(b Backend) bool { return b.Address == l.Addr })
		if i < 0 {
			i, list = len(list), append(list, Backend{Address: l.Addr, Change: "added"})
		}
		list[i].Health, list[i].Weight, list[i].Drain, list[i].NodesThen = l.Health.String(), l.Weight, l.Drain, l.Nodes
	}
	slices.SortFunc(list, func(a, b Backend) int { return a.Address.Compare(b.Address) })
	return list
}
