package fence

import (
	"cmp"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
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
			limit := cmp.Or(*exploreFor, 5*time.Minute)
			e := explore(w, stateMachine{}, limit)
			t.Log(e.summary())
			must.True(t, len(e.found) == 0, "%s", strings.Join(e.found, "\n"))
			must.True(t, e.complete || w.large, "not every state was reached in %s", limit)
		})
	}
}

// What the explorer must find: the faults that were there, put back one by one.
func TestExplorerFindsFaults(t *testing.T) {
	for name, c := range map[string]struct {
		world, want string
		broken      stateMachine
	}{
		"the gate lets everything go":                     {"one loss", "two writers", stateMachine{holders: func(h *Holder) { *h = Holder{Node: readyNamed(h.Node.Name, "b")} }}},
		"the gate ignores records":                        {"restart", "two writers", stateMachine{holders: func(h *Holder) { h.Status = v1alpha1.NodeFenceStatus{} }}},
		"a node that returned has no grace period":        {"restart", "two writers", stateMachine{facts: withoutReturn}},
		"a grace period holds volumes of one node only":   {"read by many", "two writers", stateMachine{holders: withoutGrace}},
		"a volume is gone with its PersistentVolume":      {"volume", "two writers", stateMachine{forgets: true}},
		"a round does not read its nodes again":           {"round", "healthy node fenced", stateMachine{hasty: true}},
		"a node is fenced as soon as its Node is deleted": {"deleted", "healthy node fenced", stateMachine{facts: lostLongAgo}},
		"held volumes are not remembered":                 {"restart", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { f.Status.Volumes = nil }}},
		"a fence needs no confirmation":                   {"late", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { confirmed(func(NetworkFence) bool { return true })(nil, view{}, f) }}},
		"unfencing confirms a fence": {"late", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) {
			confirmed(func(n NetworkFence) bool { return n.Result != "" })(nil, view{}, f)
		}}},
		"a node is unfenced without a reboot":    {"one loss", "fence lifted", stateMachine{facts: func(_ *small, _ int, f *Facts) { rebooted(nil, view{}, f) }}},
		"a volume is held while it is on record": {"healthy", "healthy cluster slowed", stateMachine{holders: withGrace}},
		"a missed loss counts as none":           {"restart", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { f.Status.ReadyChanged = nil }, holders: func(h *Holder) { h.Status.ReadyChanged = nil }}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldNamed(c.world)
			e := explore(&w, c.broken, 5*time.Minute, c.want)
			must.True(t, len(e.found) > 0 && strings.HasPrefix(e.found[len(e.found)-1], c.want), "%q is not found: %s, %v", c.want, e.summary(), e.found)
			t.Log(e.found[len(e.found)-1])
		})
	}
}

func worldNamed(name string) exploredWorld {
	return *exploredWorlds[slices.IndexFunc(exploredWorlds, func(w *exploredWorld) bool { return w.name == name })]
}

// withoutReturn: as if a person had released the volumes.
func withoutReturn(_ *small, _ int, f *Facts) {
	if f.Node.Ready && f.Status.Phase == v1alpha1.NodeLost {
		f.Override = Override{Gate: GateAttach, At: f.Now}
	}
}

func withoutGrace(h *Holder) {
	h.Status.Volumes = slices.Clone(h.Status.Volumes)
	for i := range h.Status.Volumes {
		h.Status.Volumes[i].Until = nil
	}
}

func withGrace(h *Holder) {
	h.Status.Volumes = slices.Clone(h.Status.Volumes)
	for i := range h.Status.Volumes {
		h.Status.Volumes[i].Until = &metav1.Time{}
	}
}

func lostLongAgo(_ *small, _ int, f *Facts) {
	if f.gone() {
		since := metav1.NewTime(f.Now.Add(-deletedFor))
		f.Status.LostSince = &since
		f.Started = time.Time{}
		if f.Status.Incident == "" {
			f.Status.Incident = "1234567890"
		}
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
	{name: "healthy", volume: exclusiveVolume, left: budgets{waits: 2}},
	{name: "crashes", volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, crashes: 2}},
	{name: "late", volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, failures: 1, replays: 1}},
}
