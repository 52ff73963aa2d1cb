package services

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// loads are the numbers of nodes on 10.0.0.1 and on.
func (f *fixture) loads(servers int) []int {
	counts := f.nodesOf()
	var list []int
	for _, s := range addresses(servers) {
		list = append(list, counts[s])
	}
	return list
}

// nodesOf are the numbers of nodes by server.
func (f *fixture) nodesOf() map[string]int {
	nodes := map[string]int{}
	f.r.Pools.View(key, func(p *assign.Pool) {
		for _, at := range p.Nodes() {
			nodes[at.Backend.Addr().String()]++
		}
	})
	return nodes
}

// placement is where a node is.
func (f *fixture) placement(node string) (at assign.Placement, ok bool) {
	f.r.Pools.View(key, func(p *assign.Pool) { at, ok = p.Node(node) })
	return at, ok
}

// attachNodes attaches nodes with a number from first on.
func (f *fixture) attachNodes(first, n int) {
	f.Helper()
	for i := range n {
		f.attach(fmt.Sprintf("n%d", first+i), "v")
	}
	f.count()
}

func (f *fixture) detach(node string) {
	f.Helper()
	f.r.Pools.Detach(node, node+"-v")
	va := objects.Attachment("v", node, csi.DefaultDriver)
	va.Name = node + "-v"
	f.Must(f.API.Delete(context.Background(), va))
}

// count lets numbers of nodes come into status, and slots follow them.
func (f *fixture) count() {
	f.Helper()
	for range 2 {
		f.Clock.Step(counting)
		f.reconcile()
	}
}

func (f *fixture) drain(server int, drain bool) {
	f.Helper()
	f.change(func(s *v1alpha1.NFSService) { s.Spec.Backends[server].Drain = drain })
	f.count()
}

func (f *fixture) isBalanced(want metav1.ConditionStatus, reason string) {
	f.Helper()
	c := f.condition(v1alpha1.NFSBalanced)
	must.True(f, c.Status == want && c.Reason == reason, "got %+v", c)
}

func TestServerGetsNewNodesAfterMaintenance(t *testing.T) {
	for _, exposure := range []string{"PerNode", "PerNodeStable"} {
		f := running(t, exposure, 3)
		f.attachNodes(0, 60)
		must.Equal(t, f.loads(3), []int{20, 20, 20}, "%s: at first", exposure)
		f.drain(0, true)
		f.drain(0, false)
		f.attachNodes(60, 60)
		must.Equal(t, f.loads(3), []int{40, 40, 40}, "%s: after the maintenance", exposure)
		f.isBalanced(metav1.ConditionTrue, reasonBalanced)
	}
}

func TestIdleServerOfPerNodeIsReported(t *testing.T) {
	f := running(t, "PerNode", 2)
	f.drain(0, true)
	f.attachNodes(0, 4)
	f.drain(0, false)
	f.isBalanced(metav1.ConditionFalse, reasonIdle)
}

func TestServersGetNewNodesAfterRollingRestart(t *testing.T) {
	f := running(t, "PerNodeStable", 5)
	f.attachNodes(0, 100)
	for _, s := range addresses(5) {
		f.kill(s)
		f.healthy(s)
	}
	f.count()
	must.Equal(t, f.loads(5), []int{25, 25, 25, 25, 0}, "mounted nodes of healthy servers stay")
	f.isBalanced(metav1.ConditionFalse, reasonIdle)
	f.attachNodes(100, 25)
	must.Equal(t, f.loads(5), []int{25, 25, 25, 25, 25}, "new nodes")
	f.isBalanced(metav1.ConditionTrue, reasonBalanced)
}

func TestRebalanceGivesReturnedServerItsShare(t *testing.T) {
	f := running(t, "PerNodeStable", 10)
	f.change(func(s *v1alpha1.NFSService) { s.Spec.Rebalance = v1alpha1.RebalanceExcess })
	f.attachNodes(0, 200)
	f.kill("10.0.0.1")
	f.healthy("10.0.0.1")
	f.count()
	loads := f.loads(10)
	must.True(t, slices.Min(loads) > 0 && slices.Max(loads) <= 24, "got %v", loads) // ⌈200 / 10 × 1.2⌉
	f.isBalanced(metav1.ConditionTrue, reasonBalanced)
}

func TestServerPodsThatStartLaterGetSlots(t *testing.T) {
	f := newFixture(t, v1alpha1.NFSServiceSpec{Exposure: "PerNodeStable", Port: 2049, ServerService: &v1alpha1.NFSServerService{Name: "servers"}})
	for i := range 10 {
		var list []discoveryv1.Endpoint
		for _, a := range addresses(i + 1) {
			list = append(list, discoveryv1.Endpoint{Addresses: []string{a}})
		}
		f.slices["servers"] = endpoints(2049, list...)
		f.healthy(addresses(i + 1)...)
	}
	f.attachNodes(0, 100)
	must.Equal(t, f.loads(10), []int{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, "nodes")
	must.Equal(t, len(f.get().Status.Slots), 40, "slots")
	f.isBalanced(metav1.ConditionTrue, reasonBalanced)
}

// balancing is a service whose servers leave, die, drain, return and are added, while nodes come and go.
//
//   - new nodes go to the healthy server with the fewest nodes
//   - a mounted node moves only if its server is lost, or to a rebalance
//   - Balanced is true only if no healthy server idles; a rebalance leaves none idle that can have a slot
//   - slots are not added without end
type balancing struct {
	*fixture
	t          *rapid.T
	excess     bool
	servers    []string // in the spec
	ever       int
	dead       map[string]bool
	next, most int
	places     map[string]string // servers by node
}

// settle lets probes, moves and numbers of nodes come to rest.
func (b *balancing) settle() {
	b.Helper()
	results := map[string]string{}
	for _, s := range b.servers {
		results[s] = ""
		if b.dead[s] {
			results[s] = "dead"
		}
	}
	b.reconcile() // so that new servers are known
	for range 3 {
		b.probe(results)
	}
	b.count()
}

// takes are the healthy servers that take nodes; all that take nodes if none is healthy.
func (b *balancing) takes() []string {
	var healthy, open []string
	for _, m := range b.get().Status.Backends {
		if m.Drain || m.Health == "Down" {
			continue
		}
		address := strings.TrimSuffix(m.Address, ":2049")
		open = append(open, address)
		if m.Health == "Healthy" {
			healthy = append(healthy, address)
		}
	}
	if len(healthy) > 0 {
		return healthy
	}
	return open
}

func (b *balancing) attachOne(takes []string) {
	before := b.nodesOf()
	if len(takes) == 0 {
		return
	}
	name := fmt.Sprintf("n%d", b.next)
	b.next++
	b.fixture.attach(name, "v")
	at, _ := b.placement(name)
	server := at.Backend.Addr().String()
	b.places[name] = server
	fewest := slices.MinFunc(takes, func(x, y string) int { return before[x] - before[y] })
	must.True(b.t, slices.Contains(takes, server) && before[server] == before[fewest], "%s goes to %s although %s has fewer: %v", name, server, fewest, before)
}

func (b *balancing) check() {
	takes := b.takes()
	s := b.get().Status
	used := map[string]int{}
	for _, slot := range s.Slots {
		if slot.Nodes > 0 {
			used[strings.TrimSuffix(slot.Backend, ":2049")]++
		}
	}
	open := map[string]bool{}
	for _, m := range s.Backends {
		open[strings.TrimSuffix(m.Address, ":2049")] = !m.Drain && m.Health != "Down"
	}
	for name, before := range b.places {
		at, ok := b.placement(name)
		must.True(b.t, ok, "%s is forgotten", name)
		now := at.Backend.Addr().String()
		must.True(b.t, now == before || !open[before] || b.excess, "%s moved from %s, which is well, to %s", name, before, now)
		must.True(b.t, now != before || open[before] || len(takes) == 0, "%s stays on %s, which is lost", name, before)
		b.places[name] = now
	}
	var idle, full []string
	nodes := b.nodesOf()
	for _, m := range s.Backends {
		address := strings.TrimSuffix(m.Address, ":2049")
		if m.Health == "Healthy" && !m.Drain && nodes[address] == 0 {
			idle = append(idle, address)
		}
		if nodes[address] > 1 {
			full = append(full, address)
		}
	}
	if len(idle) > 0 && len(full) > 0 {
		must.True(b.t, b.condition(v1alpha1.NFSBalanced).Status == metav1.ConditionFalse, "%v idle beside %v, and Balanced is true", idle, full)
	}
	if b.excess && len(idle) > 0 {
		for _, address := range full {
			must.True(b.t, used[address] == 1 || !slices.Contains(takes, address), "%v idle, and %s has %d nodes on %d slots", idle, address, nodes[address], used[address])
		}
	}
	b.most = max(b.most, len(b.places))
	must.True(b.t, len(s.Slots) <= b.most+b.ever*nfs.SlotsPerBackend, "%d slots for %d nodes, and %d servers in all", len(s.Slots), b.most, b.ever)
}

func TestServersThatComeAndGoGetNewNodes(t *testing.T) {
	must.HaveTime(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := &balancing{fixture: newFixture(t, specOf("PerNodeStable", addresses(3)...)), t: rt, servers: addresses(3), ever: 3, dead: map[string]bool{}, places: map[string]string{}}
		b.excess = rapid.Bool().Draw(rt, "excess")
		if b.excess {
			b.change(func(s *v1alpha1.NFSService) { s.Spec.Rebalance = v1alpha1.RebalanceExcess })
		}
		b.settle()
		server := func(rt *rapid.T) int { return rapid.IntRange(0, len(b.servers)-1).Draw(rt, "server") }
		attach := func(rt *rapid.T) {
			takes := b.takes()
			for range rapid.IntRange(1, 8).Draw(rt, "nodes") {
				b.attachOne(takes)
			}
			b.settle()
		}
		actions := map[string]func(*rapid.T){
			"attach":       attach,
			"attach, too":  attach,
			"attach again": attach,
			"detach": func(rt *rapid.T) {
				for range rapid.IntRange(1, 4).Draw(rt, "nodes") {
					names := slices.Sorted(maps.Keys(b.places))
					if len(names) == 0 {
						return
					}
					name := rapid.SampledFrom(names).Draw(rt, "node")
					b.detach(name)
					delete(b.places, name)
				}
				b.settle()
			},
			"a server dies or returns": func(rt *rapid.T) {
				s := b.servers[server(rt)]
				b.dead[s] = !b.dead[s]
				b.settle()
			},
			"a server drains, or no more": func(rt *rapid.T) {
				i := server(rt)
				b.change(func(s *v1alpha1.NFSService) { s.Spec.Backends[i].Drain = !s.Spec.Backends[i].Drain })
				b.settle()
			},
			"a server is added": func(rt *rapid.T) {
				if len(b.servers) == 6 {
					return
				}
				b.ever++
				s := fmt.Sprintf("10.0.0.%d", b.ever)
				b.servers = append(b.servers, s)
				b.change(func(n *v1alpha1.NFSService) {
					n.Spec.Backends = append(n.Spec.Backends, v1alpha1.NFSBackend{Address: s})
				})
				b.settle()
			},
			"a server is removed": func(rt *rapid.T) {
				if len(b.servers) == 2 {
					return
				}
				i := server(rt)
				b.servers = slices.Delete(b.servers, i, i+1)
				b.change(func(n *v1alpha1.NFSService) { n.Spec.Backends = slices.Delete(n.Spec.Backends, i, i+1) })
				b.settle()
			},
		}
		names := slices.Sorted(maps.Keys(actions))
		for range 15 {
			actions[rapid.SampledFrom(names).Draw(rt, "action")](rt)
			b.check()
		}
	})
}
