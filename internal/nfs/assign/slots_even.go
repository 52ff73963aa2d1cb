package assign

import (
	"net/netip"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// evenUnused moves unused slots from the place with the most slots to the one with
// the fewest, as long as that makes them more even.
func (s *spread) evenUnused() {
	unused := make([][]int, len(s.places))
	for i, slot := range s.slots {
		if p, ok := s.index[s.now[i]]; ok && !slot.used() {
			unused[p] = append(unused[p], i)
		}
	}
	for {
		from := -1
		for i, p := range s.places {
			if len(unused[i]) > 0 && (from < 0 || p.slots > s.places[from].slots) {
				from = i
			}
		}
		if from < 0 {
			return
		}
		last := len(unused[from]) - 1
		slot := unused[from][last]
		to := s.best(slot, fewestSlots)
		if s.places[to].slots+1 >= s.places[from].slots {
			return
		}
		s.move(slot, to)
		unused[from], unused[to] = unused[from][:last], append(unused[to], slot)
	}
}

// add gives each place a number of slots at least, as far as there may be more.
func (s *spread) add(each int) {
	for least := 1; least <= each; least++ {
		for i := range s.places {
			if s.places[i].slots >= least || len(s.slots) >= nfs.MaxSlots {
				continue
			}
			s.slots, s.now = append(s.slots, Slot{}), append(s.now, netip.AddrPort{})
			s.move(len(s.slots)-1, i)
		}
	}
}

// shed moves slots in use off places above ⌈average × (1 + slack)⌉ nodes, and off the fullest
// ones while another place idles; the fullest first, and of its slots those with the fewest nodes.
// A slot moves only if the place that takes it then has less than the other had, so this ends.
func (s *spread) shed(slack int) {
	done := make([]bool, len(s.places)) // places without a slot that may leave, as the others are now
	for {
		from := s.fullest(slack, done)
		if from < 0 {
			return
		}
		slot := -1
		for i := range s.slots {
			if s.now[i] == s.places[from].Addr && s.slots[i].Nodes > 0 && (slot < 0 || s.slots[i].Nodes < s.slots[slot].Nodes) {
				slot = i
			}
		}
		to := s.best(slot, fewestNodes)
		a, b := &s.places[from], &s.places[to]
		if b.loadWith(s.slots[slot])*int(a.Weight) < a.Nodes*int(b.Weight) {
			s.move(slot, to)
			clear(done)
		} else {
			done[from] = true
		}
	}
}

// fullest is the place that loses a slot next, -1 if no place does.
func (s *spread) fullest(slack int, done []bool) int {
	nodes, weights := 0, 0
	loads := make([]Load, len(s.places))
	for i, p := range s.places {
		loads[i] = p.Load
		nodes, weights = nodes+p.Nodes, weights+int(p.Weight)
	}
	idle, fullest := len(Idle(loads)) > 0, -1
	for i, p := range s.places {
		if done[i] || p.Nodes == 0 || !idle && p.Nodes <= limit(nodes, weights, int(p.Weight), slack) {
			continue
		}
		if fullest < 0 || p.Nodes*int(s.places[fullest].Weight) > s.places[fullest].Nodes*int(p.Weight) {
			fullest = i
		}
	}
	return fullest
}
