package assign

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Slot is a ClusterIP of exposure PerNodeStable. It points to one backend at a time.
type Slot struct {
	// Backend is not valid where the slot points nowhere yet.
	Backend netip.AddrPort
	// Nodes that count at the slot: see Pool.Slots.
	Nodes int
	// Mounted: a node has a volume by the slot. It may count elsewhere.
	Mounted bool
}

func (s Slot) used() bool { return s.Nodes > 0 || s.Mounted }

// Rules for slots.
type Rules struct {
	// PerBackend is the least number of slots of a backend that takes nodes, at least 1.
	PerBackend int
	// Slack in percent, and whether slots in use leave backends that have more.
	Slack  int
	Excess bool
}

// SlotMove points a slot, by its index, to another backend. Nodes that use the slot notice as if their server restarted.
// The slots that are added follow the last one, with reason New.
type SlotMove struct {
	Slot   int            `json:"slot"`
	From   netip.AddrPort `json:"from"`
	To     netip.AddrPort `json:"to"`
	Nodes  int            `json:"nodes"`
	Reason Reason         `json:"reason"`
}

// Repoint returns the moves after which no slot points to a backend that is gone, down
// or draining while another takes nodes, and each backend that takes nodes has slots for
// new ones: unused slots are spread evenly, and where they are too few, slots are added.
//
// A slot in use goes to the backend with the fewest nodes. It leaves a healthy backend only
// if Excess is asked for: see shed. While a backend is not probed yet, slots leave only
// backends that are gone, down or draining: the probe comes within seconds, and a slot should move once.
// Without an open backend, slots stay as they are.
func Repoint(slots []Slot, members []nfs.Backend, rules Rules) []SlotMove {
	s := newSpread(slots, members)
	if len(s.places) == 0 {
		return nil
	}
	for _, i := range s.orphans() {
		by := fewestSlots
		if s.slots[i].used() {
			by = fewestNodes
		}
		s.move(i, s.best(i, by))
	}
	if !s.unprobed {
		if rules.Excess {
			s.shed(rules.Slack)
		}
		s.evenUnused()
	}
	if !s.unprobed || len(slots) == 0 { // without a slot, new nodes would wait for the probe
		s.add(max(rules.PerBackend, 1))
	}
	return s.moves(len(slots))
}

// spread is a distribution of slots in the making.
type spread struct {
	slots    []Slot
	now      []netip.AddrPort
	places   []place // backends that slots may go to, sorted by address
	index    map[netip.AddrPort]int
	members  []nfs.Backend
	unprobed bool
}

type place struct {
	Load
	hash  uint64
	slots int
}

func newSpread(slots []Slot, members []nfs.Backend) *spread {
	s := &spread{slots: slices.Clone(slots), now: make([]netip.AddrPort, len(slots)), index: map[netip.AddrPort]int{}, members: members}
	best := rank(nfs.Down)
	for _, m := range members {
		if m.Open() {
			best = min(best, rank(m.Health))
			s.unprobed = s.unprobed || m.Health == nfs.Unknown
		}
	}
	s.unprobed = s.unprobed && best == rank(nfs.Healthy)
	for _, m := range slices.SortedFunc(slices.Values(members), func(a, b nfs.Backend) int { return a.Addr.Compare(b.Addr) }) {
		if m.Open() && rank(m.Health) == best {
			s.index[m.Addr] = len(s.places)
			m.Weight = max(m.Weight, 1)
			s.places = append(s.places, place{Load: Load{Backend: m}, hash: xxhash.Sum64String(m.Addr.String())})
		}
	}
	for i, slot := range slots {
		s.now[i] = slot.Backend
		s.count(i, 1)
	}
	return s
}

func (s *spread) count(slot, sign int) {
	if i, ok := s.index[s.now[slot]]; ok {
		s.places[i].slots += sign
		s.places[i].Nodes += sign * s.slots[slot].Nodes
	}
}

func (s *spread) move(slot, to int) {
	s.count(slot, -1)
	s.now[slot] = s.places[to].Addr
	s.count(slot, 1)
}

func (s *spread) reason(slot int) Reason {
	if backend := s.slots[slot].Backend; backend.IsValid() {
		return Leaves(s.members, backend)
	}
	return New
}

// orphans are the slots that must move, those with the most nodes first. An unused slot also leaves a backend that takes no
// nodes: else each backend that returns would get new slots, while those of a failing one stay unused.
func (s *spread) orphans() []int {
	var orphans []int
	for i, slot := range s.slots {
		_, takesNodes := s.index[slot.Backend]
		if s.reason(i) != "" || !slot.used() && !takesNodes && !s.unprobed {
			orphans = append(orphans, i)
		}
	}
	slices.SortStableFunc(orphans, func(a, b int) int { return cmp.Compare(s.slots[b].Nodes, s.slots[a].Nodes) })
	return orphans
}

// fewestNodes prefers the place with the fewest nodes for its weight, with those of the slot; then with the fewest slots.
func fewestNodes(a, b *place, slot Slot) int {
	return cmp.Or(cmp.Compare(a.loadWith(slot)*int(b.Weight), b.loadWith(slot)*int(a.Weight)), cmp.Compare(a.slots, b.slots))
}

func fewestSlots(a, b *place, _ Slot) int { return cmp.Compare(a.slots, b.slots) }

func (p *place) loadWith(slot Slot) int { return p.Nodes + slot.Nodes }

// best is the place that an order prefers for a slot; of equals, by rendezvous hash.
func (s *spread) best(slot int, order func(a, b *place, slot Slot) int) int {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(slot))
	hash, best := xxhash.Sum64(key[:]), 0
	for i := range s.places[1:] {
		a, b := &s.places[i+1], &s.places[best]
		if c := order(a, b, s.slots[slot]); c < 0 || c == 0 && mix(hash^a.hash) > mix(hash^b.hash) {
			best = i + 1
		}
	}
	return best
}

func (s *spread) moves(before int) []SlotMove {
	var moves []SlotMove
	for i, slot := range s.slots {
		if i < before && s.now[i] == slot.Backend {
			continue
		}
		reason := s.reason(i)
		if reason == "" {
			reason = Excess
			if !slot.used() {
				reason = Unused
			}
		}
		moves = append(moves, SlotMove{Slot: i, Reason: reason, From: slot.Backend, To: s.now[i], Nodes: slot.Nodes})
	}
	return moves
}
