package assign

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 300, 80) }

func drawTargets(t *rapid.T, n int, plain bool) []Target {
	chosen := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID).Draw(t, "backends")
	list := []nfs.Member{}
	for _, i := range chosen {
		m := member(i)
		m.Health = rapid.SampledFrom([]nfs.Health{nfs.Healthy, nfs.Healthy, nfs.Healthy, nfs.Unknown, nfs.Failing, nfs.Down}).Draw(t, "health")
		m.Drain = rapid.IntRange(0, 4).Draw(t, "drain") == 0
		if !plain {
			m.Weight = rapid.Int32Range(1, 4).Draw(t, "weight")
			m.Zone = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone")
		}
		list = append(list, m)
	}
	return PerNodeTargets(list)
}

// checkPlan: all orphans move, and no other nodes; the excess moves with the
// fewest moves, and no backend has more than the limit afterwards.
func (w *world) checkPlan(t *rapid.T, p *Pool) {
	members := map[netip.AddrPort]nfs.Member{}
	best := rank(nfs.Down)
	for _, target := range p.backends {
		members[target.Addr] = target.Member
		if target.Open() {
			best = min(best, rank(target.Health))
		}
	}
	orphans, stay := 0, map[netip.AddrPort]int64{}
	for name, at := range p.Nodes() {
		m, ok := members[at.Backend]
		if !ok || m.Health == nfs.Down || m.Drain {
			orphans++
			continue
		}
		stay[at.Backend]++
		if slices.ContainsFunc(p.Plan(false).Moves, func(m Move) bool { return m.Node == name }) {
			t.Fatalf("%s is on %s, which is fit, and moves", name, at.Backend)
		}
	}
	nodes, weights := int64(orphans), int64(0)
	for addr, m := range members {
		if m.Open() && rank(m.Health) == best {
			nodes, weights = nodes+stay[addr], weights+int64(m.Weight)
		}
	}
	excess := 0
	limits := map[netip.AddrPort]int64{}
	for addr, m := range members {
		if m.Open() && rank(m.Health) == best {
			limits[addr] = limit(nodes, weights, int64(m.Weight), p.slack)
			excess += int(max(0, stay[addr]-limits[addr]))
		}
	}
	plan := p.Plan(true)
	n := len(plan.Moves)
	must.True(t, n == orphans+excess, "%d moves, for %d orphans and %d above the limit", n, orphans, excess)
	for _, m := range plan.Moves {
		_, ok := limits[m.To]
		must.True(t, (m.ToAddress == "" || ok) && (m.ToAddress != "" || len(limits) == 0) && m.ToAddress != m.FromAddress, "got %+v", m)
	}
	for _, l := range plan.After {
		most, ok := limits[l.Addr]
		must.True(t, !ok || int64(l.Nodes) <= most, "%s has %d nodes afterwards, and the limit is %d", l.Addr, l.Nodes, most)
	}
}

func TestPoolFollowsAttachments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.Bool().Draw(t, "equal weights, no zones")
		w := &world{
			slack: rapid.SampledFrom([]int{0, 20, 100}).Draw(t, "slack"), zones: map[string]string{}, attachments: map[key]string{},
			targets: drawTargets(t, 5, plain), processes: []*process{{leader: true}, {}},
		}
		for i := range 8 {
			w.zones[node(i).Name] = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone of node")
		}
		for _, p := range w.processes {
			w.start(p)
		}
		process := func(t *rapid.T) *process { return rapid.SampledFrom(w.processes).Draw(t, "process") }
		existing := func(t *rapid.T) (key, bool) {
			keys := slices.SortedFunc(maps.Keys(w.attachments), key.compare)
			if len(keys) == 0 {
				return key{}, false
			}
			return rapid.SampledFrom(keys).Draw(t, "attachment"), true
		}
		pods := func(t *rapid.T) {
			for range rapid.IntRange(1, 4).Draw(t, "pods") {
				k := key{node(rapid.IntRange(0, 7).Draw(t, "node")).Name, fmt.Sprint("pv-", rapid.IntRange(0, 2).Draw(t, "volume"))}
				if _, ok := w.attachments[k]; !ok {
					w.attachments[k] = ""
					w.publish(event{key: k})
				}
			}
		}
		attachAll := func(t *rapid.T) {
			p := process(t)
			for p.leader && len(p.pending) > 0 {
				first := slices.MinFunc(slices.Collect(maps.Keys(p.pending)), key.compare)
				w.attach(t, p, first)
				if p.pending[first] {
					return
				}
			}
		}
		readAll := func(t *rapid.T) {
			p := process(t)
			for len(p.unread) > 0 {
				w.read(t, p)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"":                     w.check,
			"pods start":           pods,
			"pods start, too":      pods,
			"a leader attaches":    attachAll,
			"the cache catches up": readAll,
			"the cache lags":       func(t *rapid.T) { w.read(t, process(t)) },
			"a volume is detached": func(t *rapid.T) {
				if k, ok := existing(t); ok {
					delete(w.attachments, k)
					w.publish(event{key: k, deleted: true})
				}
			},
			"a node is deleted": func(t *rapid.T) {
				if k, ok := existing(t); ok {
					for other := range w.attachments {
						if other.node == k.node {
							delete(w.attachments, other)
							w.publish(event{key: other, deleted: true})
						}
					}
				}
			},
			"backends change": func(t *rapid.T) {
				w.targets = drawTargets(t, 5, plain)
				w.publish(event{targets: w.targets})
			},
			"a process crashes":        func(t *rapid.T) { w.start(process(t)) },
			"leadership comes or goes": func(t *rapid.T) { p := process(t); p.leader = !p.leader },
		})
	})
}

func TestNewNodesAreSpreadEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		servers, nodes := rapid.IntRange(1, 40).Draw(t, "servers"), rapid.IntRange(0, 200).Draw(t, "nodes")
		p := newPool(DefaultSlack, PerNodeTargets(members(servers)))
		first := rapid.IntRange(0, 1e6).Draw(t, "first node")
		for i := range nodes {
			for _, volume := range []string{"a", "b"} {
				if _, err := p.Attach(node(first+i), volume); err != nil {
					t.Fatal(err)
				}
			}
		}
		loads := nodesOf(p)
		must.True(t, slices.Max(loads)-slices.Min(loads) <= 1, "%d nodes on %d servers: %v", nodes, servers, loads)
	})
}

// Slots never point to a backend that is down while another takes nodes, and no
// slot leaves a backend that is fit unless that is asked for, or it is unused.
func TestSlotsFollowBackends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := make([]Slot, rapid.IntRange(1, 20).Draw(t, "slots"))
		list := members(3)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if moves := Repoint(slots, list, DefaultSlack, false); len(moves) > 0 {
					slots = apply(slots, moves)
					again := Repoint(slots, list, DefaultSlack, false)
					must.True(t, len(again) == 0, "%v move again, after %v", again, moves)
				}
			},
			"nodes come and go": func(t *rapid.T) {
				for i := range slots {
					slots[i].Nodes = rapid.IntRange(0, 3).Draw(t, "nodes")
				}
			},
			"slots are added": func(t *rapid.T) { slots = append(slots, make([]Slot, rapid.IntRange(1, 4).Draw(t, "more"))...) },
			"backends change": func(t *rapid.T) {
				list = nil
				for _, target := range drawTargets(t, 6, rapid.Bool().Draw(t, "equal weights")) {
					list = append(list, target.Member)
				}
				checkRepoint(t, slots, list)
			},
		})
	})
}

func checkRepoint(t *rapid.T, slots []Slot, list []nfs.Member) {
	by, open := map[netip.AddrPort]nfs.Member{}, 0
	for _, m := range list {
		by[m.Addr] = m
		if m.Open() {
			open++
		}
	}
	for _, excess := range []bool{false, true} {
		moves := Repoint(slots, list, DefaultSlack, excess)
		for _, m := range moves {
			from, ok := by[m.From]
			fit := ok && from.Open()
			must.True(t, (!fit || m.Nodes == 0 || excess) && m.To != m.From && by[m.To].Open(), "excess %v: %+v", excess, m)
		}
		for i, s := range apply(slots, moves) {
			m, ok := by[s.Backend]
			must.True(t, open == 0 || ok && m.Open(), "slot %d points to %s, and %d other backends are open", i, s.Backend, open)
		}
	}
}
