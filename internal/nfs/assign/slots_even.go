package assign

// evenUnused moves unused slots from backends with many slots to the one
// with the fewest, as long as that makes them more even.
func (s *spread) evenUnused() {
	unused := make([][]int, len(s.places))
	for i, slot := range s.slots {
		if p, ok := s.index[s.now[i]]; ok && slot.Nodes == 0 {
			unused[p] = append(unused[p], i)
		}
	}
	for {
		from := -1
		for i, p := range s.places {
			if len(unused[i]) > 0 && (from < 0 || p.slots*s.places[from].weight > s.places[from].slots*p.weight) {
				from = i
			}
		}
		if from < 0 {
			return
		}
		last := len(unused[from]) - 1
		slot, source := unused[from][last], s.places[from]
		to := s.least(slot, nil)
		if (s.places[to].slots+1)*source.weight >= source.slots*s.places[to].weight {
			return
		}
		s.move(slot, to)
		unused[from], unused[to] = unused[from][:last], append(unused[to], slot)
	}
}

// shed moves slots, those with the fewest nodes first, off backends above their limit.
func (s *spread) shed(slack int64) {
	var slots, weights int64
	for _, p := range s.places {
		slots += p.slots
		weights += p.weight
	}
	room := func(p place) bool { return p.slots < limit(slots, weights, p.weight, slack) }
	for from := range s.places {
		for s.places[from].slots > limit(slots, weights, s.places[from].weight, slack) {
			slot := -1
			for i := range s.slots {
				if s.now[i] == s.places[from].addr && (slot < 0 || s.slots[i].Nodes < s.slots[slot].Nodes) {
					slot = i
				}
			}
			s.move(slot, s.least(slot, room))
		}
	}
}
