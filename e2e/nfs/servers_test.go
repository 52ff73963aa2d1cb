package nfs

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// add adds another shared server, and waits until it is healthy.
func (s *scene) add() {
	s.Helper()
	all, err := s.c.servers(s.ctx, len(s.servers)+1)
	s.must(err)
	s.servers = all
	added := all[len(all)-1]
	s.reconfigure(func(spec *v1alpha1.NFSServiceSpec) {
		spec.Backends = append(spec.Backends, v1alpha1.NFSBackend{Address: added.String()})
	})
	s.wait(func(now *v1alpha1.NFSService) bool { return backendOf(now, added).Health == nfs.Healthy.String() })
}

// drain drains the first server.
func (s *scene) drain() {
	s.Helper()
	s.reconfigure(func(spec *v1alpha1.NFSServiceSpec) { spec.Backends[0].Drain = true })
	s.wait(func(now *v1alpha1.NFSService) bool {
		return backendOf(now, s.servers[0]).Drain && now.Status.ObservedGeneration == now.Generation
	})
}

// same fails the test if a node has another address than before.
func (s *scene) same(before, now map[string]string) {
	s.Helper()
	for node, address := range before {
		if now[node] != address {
			s.Errorf("%s mounted %s and has %s now", node, address, now[node])
		}
	}
}

// Servers of exposure PerNode: mounted nodes never move, and are reported.
func serversChangePerNode(t *testing.T) {
	s := newScene(t, "changes-per-node", nfs.PerNode, 3)
	before := s.attach(s.nodes(0, 12)...)
	s.add()
	now := s.attach(s.nodes(12, 16)...)
	s.same(before, now)
	s.even(s.loads(now))
	for _, node := range s.nodes(12, 16) {
		if now[node] != s.servers[3].String() {
			t.Errorf("%s went to %s, the new server is empty", node, now[node])
		}
	}
	s.drain()
	first := s.servers[0].String()
	var stay []string
	for node, address := range now {
		if address == first {
			stay = append(stay, node)
		}
	}
	s.wait(func(service *v1alpha1.NFSService) bool {
		c := condition(service, v1alpha1.NFSBalanced)
		return c.Status == metav1.ConditionFalse && c.Reason == "RemountNeeded" && mentions(c.Message, stay)
	})
	again := s.attach(s.nodes(16, 22)...)
	s.same(now, again)
	for _, node := range s.nodes(16, 22) {
		if again[node] == first {
			t.Errorf("%s went to the draining server", node)
		}
	}
	// A remount is a detach and an attach.
	s.detach(stay...)
	after := s.attach(stay...)
	if n := s.loads(after)[first]; n != 0 {
		t.Errorf("%d nodes are on the draining server after they remounted", n)
	}
	s.wait(func(service *v1alpha1.NFSService) bool {
		return condition(service, v1alpha1.NFSBalanced).Status == metav1.ConditionTrue
	})
	s.reconfigure(func(spec *v1alpha1.NFSServiceSpec) { spec.Backends = spec.Backends[1:] })
	s.wait(func(service *v1alpha1.NFSService) bool { return len(service.Status.Backends) == 3 })
	s.same(after, s.attached(22))
}

// mentions all of the names, as whole words.
func mentions(text string, names []string) bool {
	for _, name := range names {
		if !strings.Contains(text, name+" ") {
			return false
		}
	}
	return len(names) > 0
}

// Servers of exposure PerNodeStable: no node gets another address. Only slots of a server that leaves move, and unused
// slots; with Excess, mounted slots too.
func serversChangePerNodeStable(t *testing.T) {
	s := newScene(t, "changes-stable", nfs.PerNodeStable, 3, func(service *v1alpha1.NFSService) { service.Spec.Slots = ptr.To(int32(12)) })
	before := s.attach(s.nodes(0, 9)...)
	s.counted(before)
	unusedBy := func(attached map[string]string) func(address, backend string) bool {
		used := slices.Collect(maps.Values(attached))
		return func(address, _ string) bool { return !slices.Contains(used, address) }
	}
	places := s.slots()
	s.add()
	s.wait(func(now *v1alpha1.NFSService) bool { return slotsOf(now, s.servers[3].String()) > 0 })
	unused := unusedBy(before)
	places = s.moved(places, unused)
	first, second := s.servers[0], s.servers[1]
	killed := s.c.running[second]
	from := func(server netip.Addr, unused func(string, string) bool) func(string, string) bool {
		return func(address, backend string) bool { return backend == server.String() || unused(address, backend) }
	}
	left := func(server netip.Addr) func(*v1alpha1.NFSService) bool {
		return func(now *v1alpha1.NFSService) bool {
			return slotsOf(now, server.String()) == 0 && slotsOf(now, "") == 0
		}
	}
	for _, step := range []struct {
		do    func()
		until func(*v1alpha1.NFSService) bool
		moves func(address, backend string) bool
	}{
		{func() { s.must(killed.Kill()) }, left(second), from(second, unused)},
		{func() { s.must(killed.Start(s.ctx)) }, healthIs(second, nfs.Healthy), unused},
		{s.drain, left(first), from(first, unused)},
	} {
		step.do()
		s.wait(step.until)
		places = s.moved(places, step.moves)
		s.same(before, s.attached(9))
	}
	now := s.attach(s.nodes(9, 30)...)
	s.counted(now)
	// The drained server takes nodes again: mounted nodes do not move without a rebalance.
	s.reconfigure(func(spec *v1alpha1.NFSServiceSpec) { spec.Backends[0].Drain = false })
	s.wait(func(now *v1alpha1.NFSService) bool {
		return now.Status.ObservedGeneration == now.Generation && !backendOf(now, first).Drain
	})
	if n := s.loads(now)[first.String()]; n != 0 {
		t.Errorf("%d mounted nodes moved to the returned server without a rebalance", n)
	}
	s.reconfigure(func(spec *v1alpha1.NFSServiceSpec) {
		spec.Rebalance, spec.SlackPercent = v1alpha1.RebalanceExcess, ptr.To(int32(0))
	})
	s.wait(func(now *v1alpha1.NFSService) bool { return backendOf(now, first).Nodes > 0 })
	s.same(now, s.attached(30))
	// A removed server takes its slots with it.
	s.reconfigure(func(spec *v1alpha1.NFSServiceSpec) {
		spec.Rebalance, spec.Backends = "", append(spec.Backends[:1], spec.Backends[2:]...)
	})
	places = s.slots()
	s.wait(left(second))
	s.moved(places, from(second, unusedBy(now)))
	s.same(now, s.attached(30))
}

// moved fails the test if other slots than those that may move have another server than before. It returns the servers now.
func (s *scene) moved(before map[string]string, may func(address, backend string) bool) map[string]string {
	s.Helper()
	now := s.slots()
	for address, backend := range before {
		if now[address] != backend && !may(address, backend) {
			s.Errorf("slot %s moved from %s to %s", address, backend, now[address])
		}
	}
	return now
}

// slots are servers by the address of their slot.
func (s *scene) slots() map[string]string {
	s.Helper()
	places := map[string]string{}
	for _, slot := range s.get().Status.Slots {
		places[slot.Address] = host(slot.Backend)
	}
	return places
}

func slotsOf(service *v1alpha1.NFSService, server string) int {
	n := 0
	for _, slot := range service.Status.Slots {
		if host(slot.Backend) == server {
			n++
		}
	}
	return n
}
