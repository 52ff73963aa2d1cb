package assign

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
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
	must.Equal(t, perBackend(newSlots(16, list), list), []int{4, 4, 4, 4})
	got := perBackend(newSlots(18, list), list)
	must.True(t, slices.Min(got) == 4 && slices.Max(got) == 5, "got %v", got)
	list[0].Weight = 3
	must.Equal(t, perBackend(newSlots(12, list), list), []int{6, 2, 2, 2}, "by weight")
	for _, m := range Repoint(make([]Slot, 3), list, 0, false) {
		must.Equal(t, m.Reason, New)
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
		must.Equal(t, len(moves), 4, "%s: moves", reason)
		for _, m := range moves {
			must.True(t, m.From == lost && m.To != lost && m.Reason == reason && m.Nodes == 1, "%s: %+v", reason, m)
		}
		got := perBackend(apply(slots, moves), list)
		must.True(t, got[1] == 0 && slices.Max(got) == 6 && got[0] >= 5 && got[2] >= 5 && got[3] >= 5, "%s: %v", reason, got)
	}
}

func TestReturnedBackendGetsUnusedSlotsOnly(t *testing.T) {
	list := members(4)
	slots := newSlots(16, list[:3])
	must.Equal(t, Repoint(slots, list, DefaultSlack, false), nil, "slots in use")
	slots[0].Nodes, slots[1].Nodes = 0, 0
	moves := Repoint(slots, list, DefaultSlack, false)
	must.Equal(t, len(moves), 2, "moves")
	for _, m := range moves {
		must.True(t, m.Slot <= 1 && m.To == list[3].Addr && m.Reason == Unused, "got %+v", m)
	}
}

func TestSlotsWaitForTheFirstProbe(t *testing.T) {
	list := members(4)
	slots := newSlots(16, list[:1])
	slots[0].Nodes = 0
	list[3].Health = nfs.Unknown
	must.Equal(t, Repoint(slots, list, 0, true), nil, "before a backend is probed")
	list[3].Health = nfs.Healthy
	must.Equal(t, len(Repoint(slots, list, 0, true)), 12, "moves")
}

func TestExcessSlotsMoveFewestNodesFirst(t *testing.T) {
	list := members(4)
	slots := newSlots(16, list[:3])
	for i := range slots {
		slots[i].Nodes = len(slots) - i
	}
	moves := Repoint(slots, list, 0, true)
	got := perBackend(apply(slots, moves), list)
	must.True(t, slices.Equal(got, []int{4, 4, 4, 4}) && len(moves) == 4, "%v after %v", got, moves)
	for _, m := range moves {
		must.Equal(t, m.Reason, Excess, "got %+v", m)
		for i, s := range slots {
			stays := !slices.ContainsFunc(moves, func(o SlotMove) bool { return o.Slot == i })
			if stays && s.Backend == m.From && s.Nodes < m.Nodes {
				t.Errorf("slot %d with %d nodes moves, slot %d with %d stays", m.Slot, m.Nodes, i, s.Nodes)
			}
		}
	}
	must.Equal(t, Repoint(slots, list, 50, true), nil, "within the slack") // ⌈16 / 4 × 1.5⌉ = 6
}
