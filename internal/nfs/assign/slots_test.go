package assign

import (
	"fmt"
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
		if m.Slot == len(slots) {
			slots = append(slots, Slot{})
		}
		slots[m.Slot].Backend = m.To
	}
	return slots
}

var byDefault = Rules{PerBackend: nfs.SlotsPerBackend, Slack: DefaultSlack}

// excess asks for a rebalance.
func excess(slack int) Rules { return Rules{PerBackend: 1, Slack: slack, Excess: true} }

func perBackend(slots []Slot, list []nfs.Backend) []int {
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

func newSlots(n int, list []nfs.Backend) []Slot {
	slots := make([]Slot, n)
	slots = apply(slots, Repoint(slots, list, byDefault))
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
	for _, m := range Repoint(make([]Slot, 3), list, byDefault) {
		must.Equal(t, m.Reason, New)
	}
	must.Equal(t, perBackend(apply(nil, Repoint(nil, list, byDefault)), list), []int{4, 4, 4, 4}, "none asked for")
	must.Equal(t, perBackend(newSlots(5, list), list), []int{4, 4, 4, 4}, "too few")
	must.Equal(t, len(Repoint(nil, members(nfs.MaxSlots), byDefault)), nfs.MaxSlots, "no more than the most")
	must.Equal(t, len(Repoint(nil, members(nfs.MaxSlots/2), byDefault)), nfs.MaxSlots, "no more than the most")
}

func TestOnlySlotsOfLostBackendMove(t *testing.T) {
	for reason, change := range map[Reason]func([]nfs.Backend) []nfs.Backend{
		Down:     func(l []nfs.Backend) []nfs.Backend { l[1].Health = nfs.Down; return l },
		Draining: func(l []nfs.Backend) []nfs.Backend { l[1].Drain = true; return l },
		Gone:     func(l []nfs.Backend) []nfs.Backend { return slices.Delete(l, 1, 2) },
	} {
		list := members(4)
		slots := newSlots(16, list)
		lost, rest := list[1].Addr, change(slices.Clone(list))
		moves := Repoint(slots, rest, byDefault)
		must.Equal(t, len(moves), 4, "%s: moves", reason)
		for _, m := range moves {
			must.True(t, m.From == lost && m.To != lost && m.Reason == reason && m.Nodes == 1, "%s: %+v", reason, m)
		}
		got := perBackend(apply(slots, moves), list)
		must.True(t, got[1] == 0 && slices.Max(got) == 6 && got[0] >= 5 && got[2] >= 5 && got[3] >= 5, "%s: %v", reason, got)
	}
}

func TestOrphansGoWhereFewestNodesAre(t *testing.T) {
	list := members(3)
	slots := []Slot{{list[0].Addr, 2, true}, {list[0].Addr, 4, true}, {list[1].Addr, 7, true}, {list[2].Addr, 1, true}, {list[2].Addr, 1, true}, {list[2].Addr, 1, true}}
	list[0].Drain = true
	moves := Repoint(slots, list, Rules{PerBackend: 1})
	must.True(t, len(moves) == 2 && moves[0].To == list[1].Addr && moves[1].To == list[2].Addr, "got %+v", moves)
	list[1].Weight = 10
	moves = Repoint(slots, list, Rules{PerBackend: 1})
	must.True(t, len(moves) == 2 && moves[0].To == list[1].Addr && moves[1].To == list[1].Addr, "by weight: %+v", moves)
}

func TestReturnedBackendGetsUnusedSlotsThenNewOnes(t *testing.T) {
	list := members(4)
	slots := newSlots(18, list[:3])
	slots[0].Nodes, slots[1].Nodes, slots[2].Nodes = 0, 0, 0
	slots[2].Mounted = true // by a node that counts elsewhere
	moves := Repoint(slots, list, byDefault)
	must.Equal(t, len(moves), 4, "moves")
	for i, m := range moves {
		unused := m.Slot <= 1 && m.Reason == Unused
		must.True(t, m.To == list[3].Addr && (unused || m.Slot == 16+i && m.Reason == New && !m.From.IsValid()), "got %+v", m)
	}
	must.Equal(t, len(Repoint(slots, list, Rules{PerBackend: 1})), 2, "moves, with a number of slots")
	slots[0].Nodes, slots[1].Nodes = 1, 1
	must.Equal(t, len(Repoint(slots, list, Rules{PerBackend: 1})), 1, "moves, with all slots in use")
}

// Regression: each server that returned while another failed got new slots, and those of the failing one stayed unused.
func TestOutagesInARowAddNoSlots(t *testing.T) {
	list := members(3)
	slots := newSlots(12, list)
	for i := range slots {
		slots[i].Nodes = 0
	}
	for i := range 3 {
		slots[i].Nodes = 1
	}
	for range 10 {
		for _, health := range []nfs.Health{nfs.Failing, nfs.Healthy} {
			for i := range list {
				list[i].Health = health
				slots = apply(slots, Repoint(slots, list, byDefault))
			}
		}
	}
	must.True(t, len(slots) <= 3+3*nfs.SlotsPerBackend, "%d slots for 3 nodes and 3 servers", len(slots))
}

func TestSlotsWaitForTheFirstProbe(t *testing.T) {
	list := members(4)
	slots := newSlots(16, list[:1])
	slots[0].Nodes = 0
	list[3].Health = nfs.Unknown
	must.Equal(t, Repoint(slots, list, excess(0)), nil, "before a backend is probed")
	must.Equal(t, len(Repoint(nil, list, excess(0))), 3, "moves without a slot, before a backend is probed")
	list[3].Health = nfs.Healthy
	must.Equal(t, len(Repoint(slots, list, excess(0))), 12, "moves")
}

func TestExcessMovesSlotsByTheirNodes(t *testing.T) {
	list := members(3)
	at := func(backend int, nodes ...int) (slots []Slot) {
		for _, n := range nodes {
			slots = append(slots, Slot{list[backend].Addr, n, n > 0})
		}
		return slots
	}
	for name, c := range map[string]struct {
		slots []Slot
		slack int
		want  string
	}{
		"fewest nodes first":                  {slices.Concat(at(0, 7, 3, 2), at(1, 6), at(2, 3)), 40, "[2:2]"}, // ⌈21 / 3 × 1.4⌉ = 10
		"as many as it takes":                 {slices.Concat(at(0, 7, 3, 2), at(1, 6), at(2, 3)), 0, "[1:3 2:2]"},
		"within the slack":                    {slices.Concat(at(0, 4, 5), at(1, 6), at(2, 6)), 20, "[]"},
		"a slot that would only change place": {slices.Concat(at(0, 12), at(1, 3), at(2, 3)), 0, "[]"},
		"an idle one, within the slack":       {slices.Concat(at(0, 1, 3), at(1, 4), at(2, 0)), 100, "[0:1]"},
		"an idle one, from the next":          {slices.Concat(at(0, 6), at(1, 2, 3), at(2, 0)), 100, "[1:2]"},
		"one node each is enough":             {slices.Concat(at(0, 1), at(1, 1), at(2, 0)), 0, "[]"},
	} {
		var got []string
		for _, m := range Repoint(c.slots, list, excess(c.slack)) {
			must.Equal(t, m.Reason, Excess, "%s", name)
			got = append(got, fmt.Sprintf("%d:%d", m.Slot, m.Nodes))
		}
		must.Equal(t, fmt.Sprint(got), c.want, "%s", name)
	}
}

func TestIdleBackendsAreHealthyOnesWithoutNodes(t *testing.T) {
	load := func(i, nodes int, change func(*nfs.Backend)) Load {
		l := Load{member(i), nodes}
		if change != nil {
			change(&l.Backend)
		}
		return l
	}
	for name, c := range map[string]struct {
		loads []Load
		want  int
	}{
		"one":                 {[]Load{load(0, 2, nil), load(1, 0, nil)}, 1},
		"few nodes":           {[]Load{load(0, 1, nil), load(1, 0, nil)}, 0},
		"no nodes":            {[]Load{load(0, 0, nil), load(1, 0, nil)}, 0},
		"drains":              {[]Load{load(0, 2, nil), load(1, 0, func(m *nfs.Backend) { m.Drain = true })}, 0},
		"fails":               {[]Load{load(0, 2, nil), load(1, 0, func(m *nfs.Backend) { m.Health = nfs.Failing })}, 0},
		"the other one fails": {[]Load{load(0, 2, func(m *nfs.Backend) { m.Health = nfs.Down }), load(1, 0, nil)}, 1},
		"beside a heavy one":  {[]Load{load(0, 9, func(m *nfs.Backend) { m.Weight = 9 }), load(1, 0, nil)}, 0},
		"a heavy one":         {[]Load{load(0, 1, nil), load(1, 0, func(m *nfs.Backend) { m.Weight = 9 })}, 1},
	} {
		must.Equal(t, len(Idle(c.loads)), c.want, "%s", name)
	}
}
