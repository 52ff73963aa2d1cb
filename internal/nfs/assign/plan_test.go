package assign

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

func hundred(t *testing.T, list []nfs.Member) *Pool {
	t.Helper()
	p := newPool(DefaultSlack, PerNodeTargets(list))
	for i := range 100 {
		attach(t, p, node(i), "pv")
	}
	return p
}

func nodesAt(p *Pool, address string) []string {
	var list []string
	for name, at := range p.Nodes() {
		if at.Address == address {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func TestOnlyOrphansMove(t *testing.T) {
	for reason, change := range map[Reason]func([]nfs.Member) []nfs.Member{
		Down:     func(l []nfs.Member) []nfs.Member { l[3].Health = nfs.Down; return l },
		Draining: func(l []nfs.Member) []nfs.Member { l[3].Drain = true; return l },
		Gone:     func(l []nfs.Member) []nfs.Member { return slices.Delete(l, 3, 4) },
	} {
		p := hundred(t, members(10))
		p.SetTargets(PerNodeTargets(change(members(10))))
		for _, excess := range []bool{false, true} {
			plan := p.Plan(excess)
			if got, want := names(plan.Moves), nodesAt(p, "10.0.0.4"); !slices.Equal(got, want) {
				t.Errorf("%s: %v move, want %v", reason, got, want)
			}
			for _, m := range plan.Moves {
				if m.Reason != reason || m.FromAddress != "10.0.0.4" || m.ToAddress == "" || m.ToAddress == m.FromAddress || m.From.IsValid() == (reason == Gone) {
					t.Errorf("%s: %+v", reason, m)
				}
			}
			var after []int
			for _, l := range plan.After {
				if l.Open() {
					after = append(after, l.Nodes)
				}
			}
			if slices.Min(after) != 11 || slices.Max(after) != 12 {
				t.Errorf("%s: %v afterwards", reason, after)
			}
		}
		if n := len(nodesAt(p, "10.0.0.4")); n != 10 {
			t.Errorf("%s: Plan moved nodes itself, %d are left", reason, n)
		}
	}
}

func TestFailingBackendKeepsItsNodes(t *testing.T) {
	p := hundred(t, members(10))
	list := members(10)
	for i := range 6 {
		list[i].Health = nfs.Failing
	}
	p.SetTargets(PerNodeTargets(list))
	if plan := p.Plan(true); len(plan.Moves) != 0 {
		t.Errorf("%d nodes move while the prober is suspected", len(plan.Moves))
	}
}

func TestExcessMovesOnlyWhenAskedFor(t *testing.T) {
	p := hundred(t, members(10))
	p.SetTargets(PerNodeTargets(members(12)))
	if moves := p.Plan(false).Moves; len(moves) != 0 {
		t.Errorf("new backends move %d nodes", len(moves))
	}
	if moves := p.Plan(true).Moves; len(moves) != 0 { // ⌈100 / 12 × 1.2⌉ = 10
		t.Errorf("within the slack, %d nodes move", len(moves))
	}
	p.SetTargets(PerNodeTargets(members(20)))
	plan := p.Plan(true) // ⌈100 / 20 × 1.2⌉ = 6
	if len(plan.Moves) != 40 {
		t.Errorf("%d nodes move, want 40", len(plan.Moves))
	}
	for _, l := range plan.After {
		if l.Nodes != 6 && l.Nodes != 4 {
			t.Errorf("%s has %d nodes afterwards", l.Addr, l.Nodes)
		}
	}
	for _, m := range plan.Moves {
		if m.Reason != Excess {
			t.Errorf("got %+v", m)
		}
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
	if got := names(p.Plan(true).Moves); !slices.Equal(got, []string{"n1", "n3", "n5", "n7", "n9"}) {
		t.Errorf("%v move", got)
	}
}

func TestOrphansWithoutPlaceAreNamed(t *testing.T) {
	p := hundred(t, members(2))
	p.SetTargets(nil)
	plan := p.Plan(true)
	if len(plan.Moves) != 100 || plan.Moves[0].ToAddress != "" || plan.Moves[0].Reason != Gone || plan.Moves[0].Node != "node-0" {
		t.Errorf("%d moves, %+v", len(plan.Moves), plan.Moves[0])
	}
	p.SetTargets(PerNodeTargets(members(2)))
	if moves := p.Plan(true).Moves; len(moves) != 0 {
		t.Errorf("backends that return have lost %d nodes", len(moves))
	}
}

func TestOrphansGoToHealthyBackends(t *testing.T) {
	p := hundred(t, members(4))
	list := members(4)
	list[0].Health, list[1].Health, list[2].Health = nfs.Down, nfs.Failing, nfs.Unknown
	p.SetTargets(PerNodeTargets(list))
	for _, m := range p.Plan(false).Moves {
		if m.ToAddress != "10.0.0.4" {
			t.Fatalf("got %+v", m)
		}
	}
}
