package ondat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	bed "github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 60, 120) }

// TestPublishingInvariants runs two leaders at once over volumes that are attached,
// fail over and are detached, PVCs that come and go, and Services that people delete.
// Writes fail, answers are lost, requests of the control plane fail.
//
// At each step: the mount endpoint of a volume does not change from one address to
// another while its PVC lives, and an endpoint that was just published is the
// ClusterIP of a Service. In the end: what is served is published and led to its
// server, and nothing else is.
func TestPublishingInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(t, rt)
		actions := map[string]func(*rapid.T){
			"attach":         func(*rapid.T) { m.Attach(m.volume(), m.server()) },
			"lose server":    func(*rapid.T) { m.LoseServer(m.volume()) },
			"detach":         func(*rapid.T) { m.Detach(m.volume()) },
			"change":         func(*rapid.T) { m.Change(m.volume(), func(v *bed.Volume) { v.Description += "." }) },
			"delete PVC":     func(*rapid.T) { m.deleteClaim(m.volume()) },
			"create PVC":     func(*rapid.T) { m.createClaim(m.volume()) },
			"collect":        func(*rapid.T) { m.collectAll() },
			"delete Service": func(*rapid.T) { m.deleteService(m.volume()) },
			"poll":           func(*rapid.T) { m.pollOne(m.leader()) },
			"restart":        func(*rapid.T) { m.restart(rapid.IntRange(0, 1).Draw(rt, "leader")) },
			"write fails":    func(*rapid.T) { m.failIn = rapid.IntRange(1, 4).Draw(rt, "write") },
			"answer is lost": func(*rapid.T) { m.loseIn = rapid.IntRange(1, 4).Draw(rt, "write") },
			"endpoint fails": func(*rapid.T) { m.Server.Fail(bed.Fault{Method: "PUT", Status: 503, Times: 1}) },
			"namespace fails": func(*rapid.T) {
				m.Server.Fail(bed.Fault{Path: "/namespaces/default-id/volumes", Status: 403, Times: 1})
			},
			"": func(*rapid.T) { m.check() },
		}
		for i := range 8 { // what goes well is as frequent as what does not
			actions[fmt.Sprint("poll ", i)] = actions["poll"]
			actions[fmt.Sprint("attach ", i/2)] = actions["attach"]
		}
		rt.Repeat(actions)
		m.settle()
	})
}

type model struct {
	*bed.Server
	w       *world
	t       *rapid.T
	leaders [2]*Reconciler
	// endpoints that were seen, by the UID of the PVC.
	endpoints map[types.UID]string
	last      map[string]string
	// failIn and loseIn count writes down; 0: never.
	failIn, loseIn int
}

var modelVolumes = []string{"v-1", "v-2"}

func newModel(t *testing.T, rt *rapid.T) *model {
	w := newWorld(t)
	m := &model{Server: w.Server, w: w, t: rt, endpoints: map[types.UID]string{}, last: map[string]string{}}
	for _, id := range modelVolumes {
		m.Provision("default-id", id, "pv-"+id, "data-"+id, "apps")
		m.createClaim(id)
	}
	m.restart(0)
	m.restart(1)
	return m
}

func (m *model) restart(i int) {
	m.w.restart()
	m.w.Client.Before = func(fakeapi.Write) error {
		if m.failIn--; m.failIn == 0 {
			return errors.New("the write fails")
		}
		return nil
	}
	m.w.Client.After = func(fakeapi.Write) error {
		if m.loseIn--; m.loseIn == 0 {
			return errors.New("the answer is lost")
		}
		return nil
	}
	m.leaders[i] = m.w.r
}

func (m *model) volume() string      { return rapid.SampledFrom(modelVolumes).Draw(m.t, "volume") }
func (m *model) leader() *Reconciler { return m.leaders[rapid.IntRange(0, 1).Draw(m.t, "leader")] }
func (m *model) server() string {
	return rapid.SampledFrom([]string{"10.0.0.1:32001", "10.0.0.1:32002", "10.0.0.2:32001", "127.0.0.1:1"}).Draw(m.t, "server")
}

func (m *model) claimOf(id string) *corev1.PersistentVolumeClaim {
	return get[corev1.PersistentVolumeClaim](m.w, "data-"+id)
}

func (m *model) createClaim(id string) {
	if m.claimOf(id) == nil {
		m.w.claim("apps", "data-"+id, "pv-"+id)
	}
}

func (m *model) deleteClaim(id string) {
	if c := m.claimOf(id); c != nil {
		m.w.Must(m.w.API.Delete(context.Background(), c))
	}
}

func (m *model) services() []corev1.Service {
	var list corev1.ServiceList
	m.w.Must(m.w.API.List(context.Background(), &list))
	return list.Items
}

// collectAll is a pass of the garbage collector.
func (m *model) collectAll() {
	for _, s := range m.services() {
		owner := s.OwnerReferences[0]
		if c := get[corev1.PersistentVolumeClaim](m.w, owner.Name); c == nil || c.UID != owner.UID {
			m.w.collect(owner.UID)
		}
	}
	var slices discoveryv1.EndpointSliceList
	m.w.Must(m.w.API.List(context.Background(), &slices))
	for _, s := range slices.Items {
		owner := s.OwnerReferences[0]
		if service := m.w.service(owner.Name); service == nil || service.UID != owner.UID {
			m.w.collect(owner.UID)
		}
	}
}

func (m *model) deleteService(id string) {
	if s := m.w.service("data-" + id); s != nil {
		m.w.Must(m.w.API.Delete(context.Background(), s))
	}
}

// pollOne runs a round. What fails is tried again in the end.
func (m *model) pollOne(r *Reconciler) {
	_ = r.round(context.Background())
	m.check()
}

// check is what holds at each step.
func (m *model) check() {
	for _, id := range modelVolumes {
		v, _ := m.Volume(id)
		endpoint, claim := v.MountEndpoint(), m.claimOf(id)
		if endpoint == m.last[id] {
			continue
		}
		m.last[id] = endpoint
		if endpoint == "" {
			must.True(m.t, claim == nil, "%s: the endpoint is cleared, and the PVC lives", id)
			continue
		}
		if !slices.ContainsFunc(m.services(), func(s corev1.Service) bool { return s.Spec.ClusterIP+":2049" == endpoint }) {
			m.t.Fatalf("%s: %s is published, and no Service has it", id, endpoint)
		}
		if claim == nil {
			continue
		}
		before := m.endpoints[claim.UID]
		must.True(m.t, before == "" || before == endpoint, "%s: was mounted at %s, is at %s", id, before, endpoint)
		m.endpoints[claim.UID] = endpoint
	}
}

// settle ends all trouble, lets one leader work, and compares.
func (m *model) settle() {
	m.failIn, m.loseIn = 0, 0
	m.Recover()
	for range 4 {
		m.collectAll()
		m.pollOne(m.leaders[0])
	}
	served := map[string]int{}
	for _, id := range modelVolumes {
		if v, _ := m.Volume(id); v.NFS != nil && v.NFS.ServiceEndpoint != nil {
			served[*v.NFS.ServiceEndpoint]++
		}
	}
	for _, id := range modelVolumes {
		v, _ := m.Volume(id)
		want := ""
		if v.NFS != nil && v.NFS.ServiceEndpoint != nil && *v.NFS.ServiceEndpoint != "127.0.0.1:1" && served[*v.NFS.ServiceEndpoint] == 1 && m.claimOf(id) != nil {
			want = *v.NFS.ServiceEndpoint
		}
		named := m.w.led("data-" + id)
		if want == "" && len(named) > 0 || want != "" && !slices.Equal(named, []string{want}) {
			m.t.Fatalf("%s leads to %q, want %q", id, named, want)
		}
		if s := m.w.service("data-" + id); want != "" && (s == nil || v.MountEndpoint() != s.Spec.ClusterIP+":2049") {
			m.t.Fatalf("%s is mounted at %s, Service %+v", id, v.MountEndpoint(), s)
		}
	}
}
