package assign

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// apply points the slots as the moves say.
func apply(slots []Slot, moves []SlotMove) []Slot {
	slots = slices.Clone(slots)
	for _, m := range moves {
		slots[m.Slot].Backend = m.To
	}
	return slots
}

func perBackend(slots []Slot, list []nfs.Member) []int {
	counts := map[netip.AddrPort]int{}
	for _, s := range slots {
		counts[s.Backend]++
	}
	var result []int
	for _, m := range list {
		result = append(result, counts[m.Addr])
	}
	return result
}

func newSlots(n int, list []nfs.Member) []Slot {
	slots := make([]Slot, n)
	slots = apply(slots, Repoint(slots, list, DefaultSlack, false))
	for i := range slots {
		slots[i].Nodes = 1
	}
	return slots
}

func TestNewSlotsAreSpreadEvenly(t *testing.T) {
	list := members(4)
	if got := perBackend(newSlots(16, list), list); !slices.Equal(got, []int{4, 4, 4, 4}) {
		t.Errorf("got %v", got)
	}
	got := perBackend(newSlots(18, list), list)
	if slices.Min(got) != 4 || slices.Max(got) != 5 {
		t.Errorf("got %v", got)
	}
	list[0].Weight = 3
	if got := perBackend(newSlots(12, list), list); !slices.Equal(got, []int{6, 2, 2, 2}) {
		t.Errorf("by weight: %v", got)
	}
	for _, m := range Repoint(make([]Slot, 3), list, 0, false) {
		if m.Reason != New || m.From.IsValid() {
			t.Errorf("got %+v", m)
		}
	}
}

func TestOnlySlotsOfLostBackendMove(t *testing.T) {
	for reason, change := range map[Reason]func([]nfs.Member) []nfs.Member{
		Down:     func(l []nfs.Member) []nfs.Member { l[1].Health = nfs.Down; return l },
		Draining: func(l []nfs.Member) []nfs.Member { l[1].Drain = true; return l },
		Gone:     func(l []nfs.Member) []nfs.Member { return slices.Delete(l, 1, 2) },
	} {
		list := members(4)
		slots := newSlots(16, list)
		lost, rest := list[1].Addr, change(slices.Clone(list))
		moves := Repoint(slots, rest, DefaultSlack, true)
		if len(moves) != 4 {
			t.Errorf("%s: %d slots move", reason, len(moves))
		}
		for _, m := range moves {
			if m.From != lost || m.To == lost || m.Reason != reason || m.Nodes != 1 {
				t.Errorf("%s: %+v", reason, m)
			}
		}
		got := perBackend(apply(slots, moves), list)
		if got[1] != 0 || slices.Max(got) != 6 || got[0] < 5 || got[2] < 5 || got[3] < 5 {
			t.Errorf("%s: %v", reason, got)
		}
	}
}

func TestReturnedBackendGetsUnusedSlotsOnly(t *testing.T) {
	list := members(4)
	slots := newSlots(16, list[:3])
	if moves := Repoint(slots, list, DefaultSlack, false); len(moves) != 0 {
		t.Errorf("slots in use move: %v", moves)
	}
	slots[0].Nodes, slots[1].Nodes = 0, 0
	moves := Repoint(slots, list, DefaultSlack, false)
	if len(moves) != 2 {
		t.Errorf("got %v", moves)
	}
	for _, m := range moves {
		if m.Slot > 1 || m.To != list[3].Addr || m.Reason != Unused {
			t.Errorf("got %+v", m)
		}
	}
}

func TestSlotsWaitForTheFirstProbe(t *testing.T) {
	list := members(4)
	slots := newSlots(16, list[:1])
	slots[0].Nodes = 0
	list[3].Health = nfs.Unknown
	if moves := Repoint(slots, list, 0, true); len(moves) != 0 {
		t.Errorf("slots move before a backend is probed: %v", moves)
	}
	list[3].Health = nfs.Healthy
	if moves := Repoint(slots, list, 0, true); len(moves) != 12 {
		t.Errorf("got %v", moves)
	}
}

func TestExcessSlotsMoveFewestNodesFirst(t *testing.T) {
	list := members(4)
	slots := newSlots(16, list[:3])
	for i := range slots {
		slots[i].Nodes = len(slots) - i
	}
	moves := Repoint(slots, list, 0, true)
	got := perBackend(apply(slots, moves), list)
	if !slices.Equal(got, []int{4, 4, 4, 4}) || len(moves) != 4 {
		t.Errorf("%v after %v", got, moves)
	}
	for _, m := range moves {
		if m.Reason != Excess {
			t.Errorf("got %+v", m)
		}
		for i, s := range slots {
			stays := !slices.ContainsFunc(moves, func(o SlotMove) bool { return o.Slot == i })
			if stays && s.Backend == m.From && s.Nodes < m.Nodes {
				t.Errorf("slot %d with %d nodes moves, slot %d with %d stays", m.Slot, m.Nodes, i, s.Nodes)
			}
		}
	}
	if moves := Repoint(slots, list, 50, true); len(moves) != 0 { // ⌈16 / 4 × 1.5⌉ = 6
		t.Errorf("within the slack: %v", moves)
	}
}

func TestSlotsStayWhereNoBackendIsOpen(t *testing.T) {
	list := members(2)
	slots := newSlots(4, list)
	list[0].Health, list[1].Drain = nfs.Down, true
	if moves := Repoint(slots, list, DefaultSlack, true); len(moves) != 0 {
		t.Errorf("got %v", moves)
	}
}
