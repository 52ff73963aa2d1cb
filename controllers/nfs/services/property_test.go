package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 60, 40) }

// publishing is a service whose servers fail and return, while Services are deleted
// and the controller crashes between any two of its writes.
//
//   - an address that was recorded never changes
//   - a slice names a server of the service; two servers are never named at once
//   - at rest no address leads to a dead server while another takes nodes
type publishing struct {
	*fixture
	t         *rapid.T
	lives     int // writes until the controller crashes; -1: none
	addresses map[string]string
	servers   []string
}

func newPublishing(t *rapid.T, outer *testing.T) *publishing {
	servers := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
	spec := specOf(rapid.SampledFrom([]string{"Stable", "PerNodeStable"}).Draw(t, "exposure"), servers...)
	p := &publishing{fixture: newFixture(outer, spec), t: t, lives: -1, addresses: map[string]string{}, servers: servers}
	p.Client.Before = func(fakeapi.Write) error {
		if p.lives == 0 {
			return fakeapi.ErrCrashed
		}
		return nil
	}
	p.Client.After = func(fakeapi.Write) error {
		p.inspect()
		if p.lives--; p.lives == 0 {
			return fakeapi.ErrCrashed // done, and not known
		}
		return nil
	}
	p.healthy(servers...)
	return p
}

// inspect checks what must hold after each write.
func (p *publishing) inspect() {
	status := p.get().Status
	check := func(name, address string) {
		before := p.addresses[name]
		must.True(p.t, before == "" || before == address, "%s had address %s recorded and has %s", name, before, address)
		p.addresses[name] = address
	}
	check("pool", status.Address)
	for i, s := range status.Slots {
		check(fmt.Sprintf("slot %d", i), s.Address)
	}
	var list discoveryv1.EndpointSliceList
	p.Must(p.List(context.Background(), &list))
	named := map[string]int{}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			named[s.Labels[discoveryv1.LabelServiceName]]++
			must.True(p.t, slices.Contains(p.servers, e.Addresses[0]), "slice %s names %s", s.Name, e.Addresses[0])
		}
	}
	for name, n := range named {
		must.True(p.t, n <= 1, "%d servers are named for Service %s", n, name)
	}
}

// pass is one pass of the controller; a process that dies is restarted.
func (p *publishing) pass() {
	_, err := p.r.Reconcile(context.Background(), requestOf())
	if errors.Is(err, fakeapi.ErrCrashed) {
		p.lives = -1
		p.restart()
		return
	}
	p.Must(err)
}

// rest lets everything settle.
func (p *publishing) rest() {
	p.lives = -1
	for range 3 {
		p.Clock.Step(counting)
		p.reconcile()
	}
	s := p.get()
	down := map[string]bool{}
	for _, b := range s.Status.Backends {
		down[b.Address] = b.Health == nfs.Down.String()
	}
	leads := map[string]string{"pool": s.Status.Backend}
	if s.Spec.Exposure == "PerNodeStable" {
		leads = map[string]string{}
		for i, slot := range s.Status.Slots {
			leads[fmt.Sprintf("pool-slot-%d", i)] = slot.Backend
		}
	}
	for name, backend := range leads {
		if down[backend] { // the guard keeps another in use
			p.t.Fatalf("%s leads to %s, which is down: %+v", name, backend, s.Status.Backends)
		}
		got := p.published(name)
		must.True(p.t, len(got) == 1 && got[0]+":2049" == backend, "Service %s publishes %v, recorded is %s", name, got, backend)
	}
}

func TestAddressesHoldInAnyOrder(t *testing.T) {
	must.HaveTime(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := newPublishing(rt, t)
		rt.Repeat(map[string]func(*rapid.T){
			"pass":  func(*rapid.T) { p.pass() },
			"crash": func(rt *rapid.T) { p.lives = rapid.IntRange(1, 6).Draw(rt, "writes") },
			"restart": func(*rapid.T) {
				p.lives = -1
				p.restart()
				p.pass()
			},
			"probe": func(rt *rapid.T) {
				results := map[string]string{}
				for _, s := range p.servers {
					results[s] = rapid.SampledFrom([]string{"", "", "", "dead"}).Draw(rt, s)
				}
				for range rapid.IntRange(1, 3).Draw(rt, "times") {
					p.probe(results)
				}
			},
			"delete": func(rt *rapid.T) {
				var list corev1.ServiceList
				p.Must(p.List(context.Background(), &list))
				if len(list.Items) > 0 {
					service := &list.Items[rapid.IntRange(0, len(list.Items)-1).Draw(rt, "service")]
					p.Must(p.Delete(context.Background(), service))
					testkit.Collect(p, p.API, service.UID)
				}
			},
			"drain": func(rt *rapid.T) {
				i, drain := rapid.IntRange(0, 2).Draw(rt, "server"), rapid.Bool().Draw(rt, "drain")
				p.change(func(s *v1alpha1.NFSService) { s.Spec.Backends[i].Drain = drain })
			},
		})
		p.change(func(s *v1alpha1.NFSService) {
			for i := range s.Spec.Backends {
				s.Spec.Backends[i].Drain = false
			}
		})
		p.rest()
	})
}
