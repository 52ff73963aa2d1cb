package pools

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 200, 60) }

var svcKey = types.NamespacedName{Namespace: "storage", Name: "pool"}

// service has healthy servers 10.0.0.1 to 10.0.0.n.
func service(exposure string, n int) *v1alpha1.NFSService {
	s := &v1alpha1.NFSService{Spec: v1alpha1.NFSServiceSpec{Exposure: exposure, Port: 2049}}
	s.Namespace, s.Name = svcKey.Namespace, svcKey.Name
	for i := range n {
		s.Status.Backends = append(s.Status.Backends, v1alpha1.NFSBackendStatus{Address: fmt.Sprintf("10.0.0.%d:2049", i+1), Health: "Healthy", Weight: 1})
	}
	return s
}

func node(name string) assign.Node { return assign.Node{Name: name} }

func TestAddressesFollowTheExposure(t *testing.T) {
	for _, test := range []struct {
		exposure string
		change   func(*v1alpha1.NFSService)
		want     string
	}{
		{"PerNode", func(s *v1alpha1.NFSService) {}, "10.0.0.1"},
		{"PerNode", func(s *v1alpha1.NFSService) { s.Status.Backends[0].Address = "10.0.0.1:12049" }, "10.0.0.1:12049"},
		{"PerNode", func(s *v1alpha1.NFSService) { s.Status.Backends[0].Address = "[fd00::1]:12049" }, "[fd00::1]:12049"},
		{"PerNodeStable", func(s *v1alpha1.NFSService) {
			s.Status.Slots = []v1alpha1.NFSSlotStatus{{Address: "10.96.0.7", Backend: "10.0.0.1:2049"}}
		}, "10.96.0.7"},
		{"PerNodeStable", func(s *v1alpha1.NFSService) { // the Service of the slot does not exist yet
			s.Status.Slots = []v1alpha1.NFSSlotStatus{{Backend: "10.0.0.1:2049"}}
		}, ""},
		{"Stable", func(s *v1alpha1.NFSService) {
			s.Status.Address, s.Status.Backend, s.Spec.Port = "10.96.0.8", "10.0.0.1:2049", 2050
		}, "10.96.0.8:2050"},
		{"Stable", func(s *v1alpha1.NFSService) { s.Status.Address = "10.96.0.8" }, ""},
	} {
		s := service(test.exposure, 1)
		test.change(s)
		p := New()
		p.SetService(s)
		got, err := p.Attach(svcKey, node("n"), "k")
		if got != test.want || (test.want == "") != errors.Is(err, assign.ErrNoBackend) {
			t.Errorf("%s: got %q, %v, want %q", test.exposure, got, err, test.want)
		}
	}
}

func TestUnknownServiceTakesNoNodes(t *testing.T) {
	p := New()
	p.Record(svcKey, node("n"), "k", "10.0.0.1")
	_, err := p.Attach(svcKey, node("m"), "l")
	must.True(t, errors.Is(err, ErrUnknownService), "got %v", err)
	p.SetService(service("PerNode", 2))
	must.Equal(t, len(nodesOf(p)), 1, "the node that was attached before is lost")
	p.RemoveService(svcKey)
	at, ok := nodesOf(p)["n"]
	must.True(t, ok && !at.Backend.IsValid(), "a node of a removed service is at %+v", at)
}

func TestAttachmentCountsForOneService(t *testing.T) {
	p, other := New(), types.NamespacedName{Namespace: "storage", Name: "other"}
	p.Record(other, node("n"), "k", "10.0.0.1")
	p.Record(svcKey, node("n"), "k", "10.0.0.1")
	must.Equal(t, len(nodesOf(p)), 1, "nodes of the service")
	p.View(other, func(pool *assign.Pool) {
		must.Equal(t, pool.Len(), 0, "nodes of the service that it was recorded for first")
	})
}

func TestChangesAreReported(t *testing.T) {
	p := New()
	changes := 0
	p.OnChange(func(types.NamespacedName, string) { changes++ })
	p.SetService(service("PerNode", 2))
	address, _ := p.Attach(svcKey, node("n"), "k")
	p.Record(svcKey, node("n"), "k", address) // the attacher's own write comes back
	must.Equal(t, changes, 1, "changes after one attachment, want 1")
	p.Detach("n", "k")
	p.Detach("n", "k")
	must.Equal(t, changes, 2, "changes after its end, want 2")
}

// The status write of an attachment may fail, and be tried again after its server died.
func TestRetriedAttachmentAvoidsTheDeadServer(t *testing.T) {
	for _, written := range []bool{false, true} {
		p, s := New(), service("PerNode", 2)
		s.ResourceVersion = "1"
		p.SetService(s)
		first, err := p.Attach(svcKey, node("n"), "k")
		must.Do(t, err)
		if written {
			p.Record(svcKey, node("n"), "k", first)
		}
		s = s.DeepCopy()
		s.ResourceVersion = "2"
		for i := range s.Status.Backends {
			if s.Status.Backends[i].Address == first+":2049" {
				s.Status.Backends[i].Health = "Down"
			}
		}
		p.SetService(s)
		p.Withdraw("n", "k")
		again, err := p.Attach(svcKey, node("n"), "k")
		must.Do(t, err)
		must.Equal(t, again == first, written, "kept; written: %v", written)
		must.Equal(t, nodesOf(p)["n"].Address, again, "held")
	}
}

// A restart moves no node and keeps all counts.
func TestRestartKeepsAssignments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, s := New(), service("PerNode", 4)
		p.SetService(s)
		have := map[Key][2]string{} // node and address
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprintf("n%d", rapid.IntRange(0, 9).Draw(t, "node"))
			key := fmt.Sprintf("%s-%d", name, rapid.IntRange(0, 2).Draw(t, "volume"))
			if rapid.Bool().Draw(t, fmt.Sprintf("attach%d", i)) {
				address, err := p.Attach(svcKey, node(name), key)
				must.Do(t, err)
				before, ok := have[key]
				must.True(t, !ok || before[1] == address, "attachment %s got %s after %s", key, address, before[1])
				have[key] = [2]string{name, address}
			} else {
				p.Detach(name, key)
				delete(have, key)
			}
		}
		q := New()
		q.SetService(s)
		for key, at := range have {
			q.Record(svcKey, node(at[0]), key, at[1])
		}
		must.Equal(t, nodesOf(q), nodesOf(p), "nodes after a restart")
	})
}

func nodesOf(p *Pools) (nodes map[string]assign.Placement) {
	p.View(svcKey, func(pool *assign.Pool) { nodes = pool.Nodes() })
	return nodes
}
