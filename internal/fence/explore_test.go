package fence

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

type fingerprint [16]byte

// encoder writes a state so that two states of one text have the same future: times count by their order and by whether a period
// is over, incidents by their order.
type encoder struct {
	b         []byte
	ages      ages
	incidents []string
}

func (e *encoder) num(n int)        { e.b = append(e.b, byte(n)) }
func (e *encoder) str(s string)     { e.b = append(append(e.b, s...), 0) }
func (e *encoder) time(t time.Time) { e.num(e.ages.of(t)) }
func (e *encoder) ptr(t *metav1.Time) {
	if t == nil {
		e.num(255)
	} else {
		e.time(t.Time)
	}
}

func (e *encoder) flags(flags ...bool) {
	var n int
	for i, f := range flags {
		if f {
			n |= 1 << i
		}
	}
	e.num(n)
}

func (e *encoder) incident(i string) {
	if i == "" {
		e.num(255)
		return
	}
	at := slices.Index(e.incidents, i)
	if at < 0 {
		at = len(e.incidents)
		e.incidents = append(e.incidents, i)
	}
	e.num(at)
}

func (s *small) encode(e *encoder) {
	e.b, e.incidents, e.ages = e.b[:0], e.incidents[:0], s.ages(e.ages.list[:0])
	s.write(e)
	l := s.left
	e.b = append(e.b, l.freezes, l.powers, l.restarts, l.deletions, l.taints, l.acts, l.volumes, l.failures, l.replays, l.slow, l.waits, l.times, l.leaders, l.edits)
	if saw := s.fairlead.saw; saw != nil {
		e.flags(s.fairlead.todo[:]...)
		saw.write(e)
		for _, f := range saw.fences {
			same := func(now smallFence) bool { return now.Name == f.Name && now.ResourceVersion == f.ResourceVersion }
			e.flags(slices.ContainsFunc(s.fences, same))
		}
		for _, r := range saw.fairlead.records {
			same := func(now smallRecord) bool { return now.name == r.name && now.version == r.version }
			e.flags(slices.ContainsFunc(s.fairlead.records, same))
		}
	}
}

func (s *small) write(e *encoder) {
	for i := range s.nodes {
		m, n := &s.machines[i], &s.nodes[i]
		e.flags(m.on, m.reaches, m.waits, m.firstStatus, m.noticed, m.forgiven, m.lost, s.blocked[i])
		e.num(int(m.boot)<<2 | int(m.mount))
		e.flags(n.exists, n.ready, n.unknown, n.taint, n.inUse)
		e.num(int(n.uid)<<4 | int(n.boot)<<2 | int(n.attached))
		e.time(n.changed)
		e.time(n.gone)
		e.str(s.fairlead.lastBoot[i])
	}
	e.flags(s.volume)
	for _, l := range s.late {
		e.num(int(l.machine)<<1 | 128)
		e.flags(l.unblock)
	}
	e.time(s.fairlead.started)
	e.time(s.now.Add(s.fairlead.skew))
	for _, f := range s.fences {
		e.incident(f.Labels[IncidentLabel])
		e.num(int(f.machine)<<4 | int(f.boot))
		e.flags(f.Unfenced, f.Deleting, f.due, f.relied)
		e.str(f.Message)
	}
	for i := range s.fairlead.records {
		s.fairlead.records[i].write(e)
	}
}

func (r *smallRecord) write(e *encoder) {
	s := &r.status
	e.str(r.name)
	e.str(string(s.Phase))
	e.str(s.Reason)
	e.str(string(s.Node.UID))
	e.str(s.Node.BootID)
	e.str(s.Node.SystemUUID)
	e.flags(s.Gone, s.Released)
	e.num(s.Ordinal)
	for _, t := range []*metav1.Time{s.LastHealthy, s.ReadySince, s.ReadyChanged, s.LostSince, s.Tainted} {
		e.ptr(t)
	}
	e.incident(s.Incident)
	for _, i := range s.Identities {
		for _, a := range i.Addresses {
			e.str(a.CIDR)
			e.flags(a.Earlier, i.Problem != "")
			e.time(a.LastSeen.Time)
		}
	}
	for _, v := range s.Volumes {
		e.flags(v.Waiting, v.Detached)
		e.ptr(v.Until)
	}
	for _, f := range s.Fences {
		e.incident(f.Incident)
		e.str(f.State)
		e.flags(f.VolumesReleased, f.Message != "")
		e.num(f.Failures)
		e.time(f.Since.Time)
	}
	e.num(200)
	for _, i := range s.Ended {
		e.incident(i)
	}
	if len(r.annotations) > 0 {
		o := r.read().Override
		e.str(o.Gate)
		if o.Gate != "" {
			e.time(o.At)
		}
	}
}

var exploreFor = flag.Duration("explore", 0, "explore every world for at most so long")

// Every reachable state of the small worlds, over the real functions: no volume gets two writers, no fence is lifted early, and no
// healthy node is fenced. Worlds that take longer than seconds are explored by make explore only.
func TestExplore(t *testing.T) {
	for _, w := range exploredWorlds {
		t.Run(w.name, func(t *testing.T) {
			limit := cmp.Or(*exploreFor, 5*time.Minute)
			if *exploreFor == 0 && w.large {
				t.Skip("make explore takes its time for this world")
			}
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
		"a node is unfenced without a reboot": {"one loss", "fence lifted", stateMachine{facts: func(_ *small, _ int, f *Facts) { rebooted(nil, view{}, f) }}},
		"a missed loss counts as none":        {"restart", "two writers", stateMachine{facts: func(_ *small, _ int, f *Facts) { f.Status.ReadyChanged = nil }, holders: func(h *Holder) { h.Status.ReadyChanged = nil }}},
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
	{name: "shared", large: true, volume: sharedVolume, left: budgets{freezes: 1, taints: 1, times: 1}},
	{name: "act", large: true, volume: exclusiveVolume, left: budgets{freezes: 2, taints: 1, times: 1, acts: 1}},
	{name: "unfenced by hand", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, times: 1, restarts: 1, failures: 1}, begins: unfencedByHand},
	{name: "clocks", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, restarts: 1, times: 2, leaders: 1}},
	{name: "edited", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, edits: 1}},
	{name: "caches", large: true, volume: exclusiveVolume, left: budgets{freezes: 1, restarts: 1, times: 1, slow: 1}},
	{name: "late", volume: exclusiveVolume, left: budgets{freezes: 1, taints: 1, failures: 1, replays: 1}},
}

// --- search

// mostStates fit into 8 GiB.
const mostStates = 8_000_000

type visited struct {
	parent int32
	action string
}

type exploration struct {
	world    *exploredWorld
	states   int
	depth    int
	complete bool
	bound    string
	found    []string
	took     time.Duration
}

func (e exploration) summary() string {
	how := "complete"
	if !e.complete {
		how = "not complete: " + e.bound
	}
	return fmt.Sprintf("%s: %d states, depth %d, %s, %s", e.world.name, e.states, e.depth, how, e.took.Round(time.Second))
}

// explore the world breadth first, until no new state is found, one of the faults is, or a bound is reached.
func explore(of *exploredWorld, y system, longest time.Duration, until ...string) exploration {
	world := *of
	w := &world
	w.system = y
	began := time.Now()
	e := exploration{world: w}
	seen := map[fingerprint]struct{}{}
	var log []visited
	type open struct {
		s  small
		at int32
	}
	var text encoder
	print := func(s *small) (f fingerprint) {
		s.encode(&text)
		h := fnv.New128a()
		h.Write(text.b)
		h.Sum(f[:0])
		return f
	}
	trace := func(at int32, last string) string {
		steps := []string{last}
		for ; at > 0; at = log[at].parent {
			steps = append(steps, log[at].action)
		}
		slices.Reverse(steps)
		return strings.Join(steps, "\n  ")
	}
	first := newSmall(w)
	level := []open{{first, 0}}
	log = append(log, visited{})
	seen[print(&first)] = struct{}{}
	kinds := map[string]bool{}
	for len(level) > 0 {
		var next []open
		for _, o := range level {
			for _, a := range o.s.actions() {
				s := o.s
				s.left = o.s.left
				a.do(&s)
				if s.found != "" {
					kind, _, _ := strings.Cut(s.found, ":")
					if !kinds[kind] {
						kinds[kind] = true
						e.found = append(e.found, s.found+"\n  "+trace(o.at, a.name))
						if slices.Contains(until, kind) {
							e.states, e.took, e.bound = len(seen), time.Since(began), "found"
							return e
						}
					}
					continue
				}
				f := print(&s)
				if _, known := seen[f]; known {
					continue
				}
				seen[f] = struct{}{}
				log = append(log, visited{o.at, a.name})
				next = append(next, open{s, int32(len(log) - 1)})
			}
			if len(seen) > mostStates || time.Since(began) > longest {
				e.bound = fmt.Sprintf("%d states or %s", mostStates, longest)
				e.states, e.took = len(seen), time.Since(began)
				return e
			}
		}
		if len(next) > 0 {
			e.depth++
		}
		level = next
	}
	e.complete, e.states, e.took = true, len(seen), time.Since(began)
	return e
}
