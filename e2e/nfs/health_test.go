package nfs

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

func healthIs(server netip.Addr, health nfs.Health) func(*v1alpha1.NFSService) bool {
	return func(s *v1alpha1.NFSService) bool { return backendOf(s, server).Health == health.String() }
}

// backendsWith counts the backends of a health.
func backendsWith(service *v1alpha1.NFSService, health nfs.Health) (n int) {
	for _, b := range service.Status.Backends {
		if b.Health == health.String() {
			n++
		}
	}
	return n
}

// If more servers stop at once than may be out, the prober is suspected and the servers stay in use, until they answer.
func TestManyServersStoppedAreNotAllTakenOut(t *testing.T) {
	s := newScene(t, "suspected", nfs.PerNodeStable, 5)
	now := s.attach(s.nodes(0, 10)...)
	s.counted(now)
	var stopped []*Server
	t.Cleanup(func() {
		for _, server := range stopped {
			_ = server.Resume()
		}
	})
	for _, a := range s.servers[1:] {
		s.must(s.c.running[a].Hang())
		stopped = append(stopped, s.c.running[a])
	}
	s.wait(func(service *v1alpha1.NFSService) bool {
		return condition(service, v1alpha1.NFSProberSuspected).Status == metav1.ConditionTrue && backendsWith(service, nfs.Failing)+backendsWith(service, nfs.Down) == 4
	})
	service := s.get()
	if n := backendsWith(service, nfs.Down); n > 2 {
		t.Errorf("%d of 5 servers are out; at most half may be", n)
	}
	for i, slot := range service.Status.Slots {
		if slot.Backend == "" {
			t.Errorf("slot %d points nowhere", i)
		}
	}
	s.awaitEvent(s.service, "TooManyFail", "backends fail their probes")
	s.same(now, s.attached(10))
	for _, server := range stopped {
		s.must(server.Resume())
	}
	s.wait(func(service *v1alpha1.NFSService) bool {
		return condition(service, v1alpha1.NFSProberSuspected).Status == metav1.ConditionFalse && service.Status.HealthyBackends == 5
	})
	s.same(now, s.attached(10))
}

// A server that answers without its export is taken out.
func TestServerWithoutItsExportIsTakenOut(t *testing.T) {
	s := newScene(t, "export", nfs.PerNodeStable, 3)
	now := s.attach(s.nodes(0, 6)...)
	server := s.c.running[s.servers[1]]
	restart := func(export string) {
		server.Export = export
		s.must(errors.Join(server.Kill(), server.Start(s.ctx)))
	}
	restart("/elsewhere")
	t.Cleanup(func() {
		if server.Export != Export {
			server.Export = Export
			_ = server.Kill()
		}
	})
	s.wait(healthIs(s.servers[1], nfs.Down))
	if b := backendOf(s.get(), s.servers[1]); !strings.Contains(b.LastError, Export) {
		t.Errorf("the reason names no share: %q", b.LastError)
	}
	s.wait(func(now *v1alpha1.NFSService) bool { return slotsOf(now, s.servers[1].String()) == 0 })
	restart(Export)
	s.wait(healthIs(s.servers[1], nfs.Healthy))
	s.same(now, s.attached(6))
}

// A dead server is named with the reason, and gets no new nodes.
func deadServerIsIdentified(t *testing.T) {
	s := newScene(t, "identified", nfs.PerNode, 3)
	before := s.attach(s.nodes(0, 6)...)
	server := s.c.running[s.servers[1]]
	s.must(server.Kill())
	s.wait(healthIs(s.servers[1], nfs.Down))
	service := s.get()
	if b := backendOf(service, s.servers[1]); b.LastError == "" || b.Since == nil || b.Nodes != 2 {
		t.Errorf("status of the dead server: %+v", b)
	}
	if service.Status.HealthyBackends != 2 {
		t.Errorf("%d servers are healthy, two are", service.Status.HealthyBackends)
	}
	s.awaitEvent(s.service, "BackendDown", s.servers[1].String())
	now := s.attach(s.nodes(6, 12)...)
	s.same(before, now)
	if n := s.loads(now)[s.servers[1].String()]; n != 2 {
		t.Errorf("the dead server got %d more nodes", n-2)
	}
	s.must(server.Start(s.ctx))
	s.wait(healthIs(s.servers[1], nfs.Healthy))
	now = s.attach(s.nodes(12, 15)...)
	s.even(s.loads(now))
}
