package assign

import (
	"testing"
)

// A slot that moves again right after a move breaks its nodes' connections twice. This goes through all ways in which three
// slots with up to three nodes can lie on three backends of weight 1 to 3.
func TestNoSlotMovesTwice(t *testing.T) {
	const backends, nodes, weights = 3, 4, 3
	list := members(backends)
	slots := make([]Slot, 3)
	states := 0
	check := func(rules Rules) {
		states++
		moves := Repoint(slots, list, rules)
		if again := Repoint(apply(slots, moves), list, rules); len(again) > 0 {
			t.Fatalf("%+v on %+v with %+v: %+v move, then %+v", slots, list, rules, moves, again)
		}
	}
	var place func(slot int)
	place = func(slot int) {
		if slot == len(slots) {
			for _, slack := range []int{0, 20} {
				check(Rules{PerBackend: 1, Slack: slack, Excess: true})
			}
			return
		}
		for _, b := range list {
			for n := range nodes {
				slots[slot] = Slot{Backend: b.Addr, Nodes: n, Mounted: n > 0}
				place(slot + 1)
			}
		}
	}
	var weigh func(backend int)
	weigh = func(backend int) {
		if backend == len(list) {
			place(0)
			return
		}
		for weight := range weights {
			list[backend].Weight = int32(weight + 1)
			weigh(backend + 1)
		}
	}
	weigh(0)
	if want := 27 * 12 * 12 * 12 * 2; states != want {
		t.Errorf("%d states, want %d", states, want)
	}
}
