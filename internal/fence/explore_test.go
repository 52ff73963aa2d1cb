package fence

import (
	"cmp"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var exploreFor = flag.Duration("explore", 0, "explore every world for at most so long")

// Every reachable state of the small worlds, over the real functions: no volume gets two writers, no fence is lifted early, no
// healthy node is fenced, and no healthy cluster is slowed. Only make explore explores the large worlds.
func TestExplore(t *testing.T) {
	for _, w := range exploredWorlds {
		if w.large && *exploreFor == 0 {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			limit := cmp.Or(*exploreFor, 10*time.Minute)
			e := explore(w, stateMachine{}, limit)
			t.Log(e.summary())
			must.True(t, len(e.found) == 0, "%s", strings.Join(e.found, "\n"))
			must.True(t, e.complete || w.large, "not every state was reached in %s", limit)
		})
	}
}

var (
	exclusiveVolume = Volume{Name: "pv", Driver: rbd, Handle: "h", ClusterID: "a", AccessModes: []string{"ReadWriteOnce"}}
	sharedVolume    = Volume{Name: "pv", Driver: rbd, Handle: "h", ClusterID: "a", AccessModes: []string{"ReadWriteMany"}}
	// Kubernetes attaches it to several nodes, and one of them writes.
	readByMany = Volume{Name: "pv", Driver: rbd, Handle: "h", ClusterID: "a", AccessModes: []string{"ReadWriteOnce", "ReadOnlyMany"}}
)

// unfencedByHand: the first node was lost and fenced, and a person has said that it may be unfenced as it is.
func unfencedByHand(s *small) {
	look := func() {
		for range 6 {
			saw := *s
			s.world.system.look(s, &saw, 0, 9)
		}
	}
	s.machines[0].reaches = false
	s.nodeController(0)
	s.nodes[0].taint = true
	look()
	s.csiAddons(0)
	look()
	s.nodes[0].attached = 0
	look()
	stateMachine{}.override(s, s.fairlead.records[0].name, GateUnfence)
	look()
	s.nodes[0].taint = false
	s.machines[0].reaches = true
	s.heartbeat(0)
	look()
}

var exploredWorlds = []*exploredWorld{
	{name: "one loss", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, powers: 1, taints: 1, times: 1}},
	{name: "restart", volume: exclusiveVolume, left: budgets{freezes: 1, restarts: 1, times: 1}},
	{name: "volume", volume: exclusiveVolume, left: budgets{freezes: 1, volumes: 1, deletions: 1}},
	{name: "round", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, slow: 1}},
	{name: "deleted", volume: exclusiveVolume, left: budgets{deletions: 1, powers: 1}},
	{name: "read by many", volume: readByMany, left: budgets{freezes: 1, times: 1, restarts: 1}},
	{name: "shared", volume: sharedVolume, left: budgets{freezes: 1, taints: 1, times: 1}},
	{name: "act", large: true, volume: exclusiveVolume, left: budgets{freezes: 2, taints: 1, times: 1, acts: 1}},
	{name: "unfenced by hand", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, times: 1, restarts: 1, failures: 1}, begins: unfencedByHand},
	{name: "clocks", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, restarts: 1, times: 2, leaders: 1}},
	{name: "edited", volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, edits: 1}},
	{name: "caches", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, restarts: 1, times: 1, slow: 1}},
	{name: "unread", volume: exclusiveVolume, left: budgets{freezes: 1, restarts: 1, times: 1, unread: 1}},
	{name: "unread act", large: true, volume: exclusiveVolume, left: budgets{freezes: 2, acts: 1, unread: 2}},
	{name: "late unfencing", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, failures: 1, secs: 1, times: 1}, begins: unfencedByHand},
	{name: "slow boot", large: true, volume: exclusiveVolume, left: budgets{deletions: 1, powers: 1, gaps: 1, slowboots: 1}},
	{name: "torn", volume: exclusiveVolume, left: budgets{tears: 1, restarts: 1, waits: 1, times: 1}},
	{name: "healthy", volume: exclusiveVolume, left: budgets{waits: 2}},
	{name: "crashes", volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, crashes: 2}},
	{name: "another address", large: true, volume: exclusiveVolume, moves: true, left: budgets{deletions: 1, powers: 1, gaps: 1, taints: 1}},
	{name: "unseen", volume: exclusiveVolume, left: budgets{deletions: 1, powers: 1, gaps: 1}},
	{name: "late", volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, failures: 1, replays: 1}},
}
