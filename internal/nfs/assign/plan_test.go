package assign

import (
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func hundred(t *testing.T, n int) *Pool {
	t.Helper()
	p := newPool(DefaultSlack, members(n))
	for i := range 100 {
		attach(t, p, node(i), "pv")
	}
	return p
}

func TestOnlyOrphansMove(t *testing.T) {
	for reason, change := range map[Reason]func([]nfs.Backend) []nfs.Backend{
		Down:     func(l []nfs.Backend) []nfs.Backend { l[3].Health = nfs.Down; return l },
		Draining: func(l []nfs.Backend) []nfs.Backend { l[3].Drain = true; return l },
		Gone:     func(l []nfs.Backend) []nfs.Backend { return slices.Delete(l, 3, 4) },
	} {
		p := hundred(t, 10)
		setMembers(p, change(members(10)))
		plan := p.Plan()
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

func TestOrphansWithoutPlaceAreNamed(t *testing.T) {
	p := hundred(t, 2)
	setMembers(p, nil)
	plan := p.Plan()
	if len(plan.Moves) != 100 || plan.Moves[0].ToAddress != "" || plan.Moves[0].Reason != Gone || plan.Moves[0].Node != "node-0" {
		t.Errorf("%d moves, %+v", len(plan.Moves), plan.Moves[0])
	}
	setMembers(p, members(2))
	must.Equal(t, p.Plan().Moves, nil, "moves once the backends are back")
	list := members(2)
	list[0].Drain, list[1].Drain = true, true
	setMembers(p, list)
	after := p.Plan().After
	must.True(t, after[0].Nodes == 50 && after[1].Nodes == 50, "nodes that can't move stay: %v", after)
}
