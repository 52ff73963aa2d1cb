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
	// Nodes that use the slot: see Pool.AddressNodes.
	Nodes int
}

// SlotMove points a slot, by its index, to another backend. Nodes that use the slot notice as if their server restarted.
type SlotMove struct {
	Slot     int
	Reason   Reason
	From, To netip.AddrPort
	Nodes    int
}

// Repoint returns the fewest moves after which no slot points to a backend that is
// gone, down or draining while another takes nodes, and unused slots are
// spread evenly. If excess is asked for, slots in use also leave backends that have
// more than ⌈average × (1 + slack)⌉, those with the fewest nodes first. While a
// backend is not probed yet, only the first of the three happens: the probe comes
// within seconds, and a slot should move once. slack is in percent.
// It returns no move to a backend that is not open; slots then stay as they are.
func Repoint(slots []Slot, members []nfs.Member, slack int, excess bool) []SlotMove {
	s := newSpread(slots, members)
	if len(s.places) == 0 {
		return nil
	}
	for _, i := range s.orphans() {
		s.move(i, s.least(i, nil))
	}
	if s.unprobed {
		return s.moves()
	}
	s.evenUnused()
	if excess {
		s.shed(int64(max(slack, 0)))
	}
	return s.moves()
}

// spread is a distribution of slots in the making.
type spread struct {
	slots    []Slot
	now      []netip.AddrPort
	places   []place // backends that slots may go to, sorted by address
	index    map[netip.AddrPort]int
	members  map[netip.AddrPort]nfs.Member
	unprobed bool
}

type place struct {
	addr         netip.AddrPort
	hash         uint64
	weight       int64
	slots, nodes int64
}

func newSpread(slots []Slot, members []nfs.Member) *spread {
	s := &spread{slots: slots, now: make([]netip.AddrPort, len(slots)), index: map[netip.AddrPort]int{}, members: map[netip.AddrPort]nfs.Member{}}
	best := rank(nfs.Down)
	for _, m := range members {
		s.members[m.Addr] = m
		if m.Open() {
			best = min(best, rank(m.Health))
			s.unprobed = s.unprobed || m.Health == nfs.Unknown
		}
	}
	s.unprobed = s.unprobed && best == rank(nfs.Healthy)
	for _, m := range slices.SortedFunc(slices.Values(members), func(a, b nfs.Member) int { return a.Addr.Compare(b.Addr) }) {
		if m.Open() && rank(m.Health) == best {
			s.index[m.Addr] = len(s.places)
			s.places = append(s.places, place{addr: m.Addr, hash: xxhash.Sum64String(m.Addr.String()), weight: int64(max(m.Weight, 1))})
		}
	}
	for i, slot := range slots {
		s.now[i] = slot.Backend
		s.add(i, 1)
	}
	return s
}

func (s *spread) add(slot int, sign int64) {
	if i, ok := s.index[s.now[slot]]; ok {
		s.places[i].slots += sign
		s.places[i].nodes += sign * int64(s.slots[slot].Nodes)
	}
}

func (s *spread) move(slot, to int) {
	s.add(slot, -1)
	s.now[slot] = s.places[to].addr
	s.add(slot, 1)
}

func (s *spread) reason(slot int) Reason {
	backend := s.slots[slot].Backend
	m, ok := s.members[backend]
	switch {
	case !backend.IsValid():
		return New
	case !ok:
		return Gone
	case m.Health == nfs.Down:
		return Down
	case m.Drain:
		return Draining
	}
	return ""
}

// orphans are the slots that must move, those with the most nodes first.
func (s *spread) orphans() []int {
	var orphans []int
	for i := range s.slots {
		if s.reason(i) != "" {
			orphans = append(orphans, i)
		}
	}
	slices.SortStableFunc(orphans, func(a, b int) int { return cmp.Compare(s.slots[b].Nodes, s.slots[a].Nodes) })
	return orphans
}

// least is the backend with the fewest slots for its weight, then the fewest
// nodes, then by rendezvous hash with the slot; of those that may, if may is given.
func (s *spread) least(slot int, may func(place) bool) int {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], uint64(slot))
	hash, best := xxhash.Sum64(key[:]), -1
	for i, p := range s.places {
		if may != nil && !may(p) {
			continue
		}
		if best < 0 || cmp.Or(
			cmp.Compare((p.slots+1)*s.places[best].weight, (s.places[best].slots+1)*p.weight),
			cmp.Compare(p.nodes*s.places[best].weight, s.places[best].nodes*p.weight),
			cmp.Compare(mix(hash^s.places[best].hash), mix(hash^p.hash)),
		) < 0 {
			best = i
		}
	}
	return best
}

func (s *spread) moves() []SlotMove {
	var moves []SlotMove
	for i, slot := range s.slots {
		if s.now[i] == slot.Backend {
			continue
		}
		reason := s.reason(i)
		if reason == "" {
			reason = Excess
			if slot.Nodes == 0 {
				reason = Unused
			}
		}
		moves = append(moves, SlotMove{Slot: i, Reason: reason, From: slot.Backend, To: s.now[i], Nodes: slot.Nodes})
	}
	return moves
}
