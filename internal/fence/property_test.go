package fence

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Random walks go deeper than TestExplore: both machines fail, again and again, in all ways at once.
func TestFenceInvariants(t *testing.T) {
	many := budgets{freezes: 6, powers: 6, restarts: 6, deletions: 3, taints: 6, acts: 3, volumes: 2, failures: 4, replays: 2, slow: 6, waits: 3, tears: 2, unread: 3, secs: 4, times: 8, leaders: 2, edits: 1, crashes: 4, gaps: 2}
	rapid.Check(t, func(rt *rapid.T) {
		w := exploredWorld{
			volume: rapid.SampledFrom([]Volume{exclusiveVolume, sharedVolume, readByMany}).Draw(rt, "volume"),
			moves:  rapid.Bool().Draw(rt, "each boot has another address"), both: true, left: many, system: stateMachine{},
		}
		w.name = "random"
		s := newSmall(&w)
		var trace []string
		for range rapid.IntRange(20, 200).Draw(rt, "actions") {
			all := s.actions()
			a := all[rapid.IntRange(0, len(all)-1).Draw(rt, "action")]
			trace = append(trace, a.name)
			if a.do(&s); s.found != "" {
				rt.Fatalf("%s\n  %s", s.found, strings.Join(trace, "\n  "))
			}
		}
	})
}

// A walk finds faults too.
func TestRandomWalksFindFaults(t *testing.T) {
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := exploredWorld{volume: exclusiveVolume, both: true, left: budgets{freezes: 3, taints: 3, times: 3}, system: stateMachine{holders: func(h *Holder) { *h = Holder{Node: Node{Name: h.Node.Name, Exists: true, Ready: true}} }}}
		s := newSmall(&w)
		for range 100 {
			all := s.actions()
			if all[rapid.IntRange(0, len(all)-1).Draw(rt, "action")].do(&s); s.found != "" {
				found++
				return
			}
		}
	})
	must.True(t, found > 0, "no walk found a gate that lets everything go")
}
