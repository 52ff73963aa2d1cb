package assign

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func hundred(t *testing.T, n int) *Pool {
	t.Helper()
	p := newPool(DefaultSlack, PerNodeTargets(members(n)))
	for i := range 100 {
		attach(t, p, node(i), "pv")
	}
	return p
}

func TestOnlyOrphansMove(t *testing.T) {
	for reason, change := range map[Reason]func([]nfs.Member) []nfs.Member{
		Down:     func(l []nfs.Member) []nfs.Member { l[3].Health = nfs.Down; return l },
		Draining: func(l []nfs.Member) []nfs.Member { l[3].Drain = true; return l },
		Gone:     func(l []nfs.Member) []nfs.Member { return slices.Delete(l, 3, 4) },
	} {
		p := hundred(t, 10)
		p.SetTargets(PerNodeTargets(change(members(10))))
		for _, excess := range []bool{false, true} {
			plan := p.Plan(excess)
			must.Equal(t, len(plan.Moves), 10, "%s: moves", reason)
			for _, m := range plan.Moves {
				if m.Reason != reason || m.FromAddress != "10.0.0.4" || m.ToAddress == "" || m.From.IsValid() == (reason == Gone) {
					t.Errorf("%s: %+v", reason, m)
				}
			}
			for _, l := range plan.After {
				must.True(t, !l.Open() || l.Nodes == 11 || l.Nodes == 12, "%s: %s has %d nodes afterwards", reason, l.Addr, l.Nodes)
			}
		}
	}
}

func TestExcessMovesOnlyWhenAskedFor(t *testing.T) {
	p := hundred(t, 10)
	for _, c := range []struct {
		backends int
		excess   bool
		want     string
	}{
		{12, false, "map[]"},
		{12, true, "map[]"},          // ⌈100 / 12 × 1.2⌉ = 10
		{20, true, "map[Excess:40]"}, // ⌈100 / 20 × 1.2⌉ = 6
	} {
		p.SetTargets(PerNodeTargets(members(c.backends)))
		reasons := map[Reason]int{}
		for _, m := range p.Plan(c.excess).Moves {
			reasons[m.Reason]++
		}
		must.Equal(t, fmt.Sprint(reasons), c.want, "%d backends", c.backends)
	}
	for _, l := range p.Plan(true).After {
		must.True(t, l.Nodes == 6 || l.Nodes == 4, "%s has %d nodes afterwards", l.Addr, l.Nodes)
	}
}

func TestNodesOfOtherZonesMoveFirst(t *testing.T) {
	list := members(2)
	list[0].Zone, list[1].Zone = "a", "b"
	p := NewPool(0)
	var attachments []Attachment
	for i := range 10 {
		attachments = append(attachments, Attachment{Node{Name: fmt.Sprintf("n%d", i), Zone: []string{"a", "b"}[i%2]}, "pv", "10.0.0.1"})
	}
	p.Rebuild(attachments)
	p.SetTargets(PerNodeTargets(list))
	must.Equal(t, names(p.Plan(true).Moves), []string{"n1", "n3", "n5", "n7", "n9"})
}

func TestOrphansWithoutPlaceAreNamed(t *testing.T) {
	p := hundred(t, 2)
	p.SetTargets(nil)
	plan := p.Plan(true)
	if len(plan.Moves) != 100 || plan.Moves[0].ToAddress != "" || plan.Moves[0].Reason != Gone || plan.Moves[0].Node != "node-0" {
		t.Errorf("%d moves, %+v", len(plan.Moves), plan.Moves[0])
	}
	p.SetTargets(PerNodeTargets(members(2)))
	must.Equal(t, p.Plan(true).Moves, nil, "moves once the backends are back")
}
