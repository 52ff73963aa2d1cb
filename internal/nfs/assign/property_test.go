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

func drawTargets(t *rapid.T, n int, plain bool) []nfs.Backend {
	chosen := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID).Draw(t, "backends")
	list := []nfs.Backend{}
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
	return list
}

// checkPlan: all orphans move, and no other nodes, to the best backends.
func (w *world) checkPlan(t *rapid.T, p *Pool) {
	members := map[netip.AddrPort]nfs.Backend{}
	best := rank(nfs.Down)
	for _, b := range p.backends {
		members[b.Addr] = b.Backend
		if b.Open() {
			best = min(best, rank(b.Health))
		}
	}
	orphans := map[string]bool{}
	for name, at := range p.Nodes() {
		if m, ok := members[at.Backend]; !ok || !m.Open() {
			orphans[name] = true
		}
	}
	plan := p.Plan()
	must.Equal(t, len(plan.Moves), len(orphans), "moves")
	for _, m := range plan.Moves {
		to, ok := members[m.To]
		must.True(t, orphans[m.Node] && (best == rank(nfs.Down)) == (m.ToAddress == ""), "got %+v", m)
		must.True(t, m.ToAddress == "" || ok && to.Open() && rank(to.Health) == best, "got %+v", m)
	}
	moving := 0
	for _, l := range plan.After {
		if !members[l.Addr].Open() && best < rank(nfs.Down) {
			must.Equal(t, l.Nodes, 0, "%s afterwards", l.Addr)
		}
		moving += l.Nodes
	}
	must.True(t, best == rank(nfs.Down) || moving == p.Len(), "%d of %d nodes afterwards", moving, p.Len())
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
		p := newPool(DefaultSlack, members(servers))
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

// Slots never point to a backend that is down while another takes nodes, no slot in use
// leaves a backend that is fit unless that is asked for, and each backend gets slots.
func TestSlotsFollowBackends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{PerBackend: rapid.IntRange(1, 4).Draw(t, "per backend"), Slack: rapid.SampledFrom([]int{0, 20}).Draw(t, "slack"), Excess: rapid.Bool().Draw(t, "excess")}
		slots := make([]Slot, rapid.IntRange(0, 20).Draw(t, "slots"))
		list := members(3)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				moves := Repoint(slots, list, rules)
				checkRepoint(t, slots, list, moves, rules)
				before := len(slots)
				slots = apply(slots, moves)
				again := Repoint(slots, list, rules)
				must.True(t, len(again) == 0, "%v move again, after %v", again, moves)
				used := 0
				for _, s := range slots {
					if s.used() {
						used++
					}
				}
				must.True(t, len(slots) == before || len(slots) <= used+rules.PerBackend*len(list), "%d slots, %d used, %d backends", len(slots), used, len(list))
			},
			"nodes come and go": func(t *rapid.T) {
				for i := range slots {
					slots[i].Nodes = rapid.IntRange(0, 3).Draw(t, "nodes")
					slots[i].Mounted = slots[i].Nodes > 0 || rapid.IntRange(0, 9).Draw(t, "split") == 0
				}
			},
			"slots are added": func(t *rapid.T) {
				slots = append(slots, make([]Slot, rapid.IntRange(1, 4).Draw(t, "more"))...)
			},
			"backends change": func(t *rapid.T) {
				list = drawTargets(t, 6, rapid.Bool().Draw(t, "equal weights"))
			},
		})
	})
}

func checkRepoint(t *rapid.T, slots []Slot, list []nfs.Backend, moves []SlotMove, rules Rules) {
	by, best, unprobed := map[netip.AddrPort]nfs.Backend{}, rank(nfs.Down), false
	for _, m := range list {
		by[m.Addr] = m
		if m.Open() {
			best, unprobed = min(best, rank(m.Health)), unprobed || m.Health == nfs.Unknown
		}
	}
	for _, m := range moves {
		if m.Slot >= len(slots) {
			must.True(t, m.Reason == New && !m.From.IsValid(), "got %+v", m)
			continue
		}
		from, ok := by[m.From]
		fit := ok && from.Open()
		must.True(t, (!fit || !slots[m.Slot].used() || rules.Excess && slots[m.Slot].Nodes > 0) && m.To != m.From, "got %+v", m)
		must.True(t, rank(by[m.To].Health) == best && by[m.To].Open(), "got %+v", m)
	}
	if best == rank(nfs.Down) {
		must.Equal(t, len(moves), 0, "moves without a backend")
		return
	}
	has, used, loads := map[netip.AddrPort]int{}, map[netip.AddrPort]int{}, []Load{}
	nodes := map[netip.AddrPort]int{}
	for i, s := range apply(slots, moves) {
		m, ok := by[s.Backend]
		must.True(t, ok && m.Open(), "slot %d points to %s", i, s.Backend)
		has[s.Backend]++
		nodes[s.Backend] += s.Nodes
		if s.Nodes > 0 {
			used[s.Backend]++
		}
	}
	for _, m := range list {
		if !m.Open() || rank(m.Health) != best {
			continue
		}
		loads = append(loads, Load{m, nodes[m.Addr]})
		must.True(t, has[m.Addr] >= rules.PerBackend || unprobed && best == rank(nfs.Healthy), "%s has %d slots", m.Addr, has[m.Addr])
	}
	if rules.Excess && !unprobed && !slices.ContainsFunc(loads, func(l Load) bool { return l.Weight > 1 }) && len(Idle(loads)) > 0 {
		for _, l := range loads {
			must.True(t, l.Nodes < 2 || used[l.Addr] == 1, "%v idle, and %s has %d nodes on %d slots", Idle(loads), l.Addr, l.Nodes, used[l.Addr])
		}
	}
}
