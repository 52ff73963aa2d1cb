package publish

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 300, 80) }

// The model is a Stable service: servers that live and die, a table of their
// health, and the slices as the API has them, written one at a time with crashes
// in between. Its ClusterIP is given once.
type stable struct {
	table    *health.Table
	now      time.Time
	alive    map[netip.AddrPort]bool
	drain    map[netip.AddrPort]bool
	front    Frontend
	slices   map[discoveryv1.AddressType]Slice
	unposted []Slice
}

func (m *stable) members() []nfs.Backend {
	var list []nfs.Backend
	for _, b := range m.table.Backends() {
		list = append(list, nfs.Backend{Addr: b, Weight: 1, Drain: m.drain[b], Health: m.table.Health(b)})
	}
	return list
}

// reconcile decides what to write. A restart knows the backend from the slices alone.
func (m *stable) reconcile() {
	m.front.Backend = netip.AddrPort{}
	for _, s := range m.slices {
		if s.Backend.IsValid() {
			m.front.Backend = s.Backend
		}
	}
	m.front.Backend = ChooseStable(m.front.Name, m.front.Family(), m.front.Backend, m.members())
	m.unposted = m.front.Slices()
}

func (m *stable) write() {
	if len(m.unposted) > 0 {
		m.slices[m.unposted[0].Family] = m.unposted[0]
		m.unposted = m.unposted[1:]
	}
}

func (m *stable) check(t *rapid.T) {
	ready := 0
	for _, s := range m.slices {
		ready += len(s.Endpoints())
	}
	if ready > 1 {
		t.Fatalf("%d addresses are ready at once", ready)
	}
	if len(m.unposted) > 0 {
		return
	}
	m.reconcile()
	for len(m.unposted) > 0 {
		m.write()
	}
	healthy := slices.ContainsFunc(m.members(), func(b nfs.Backend) bool { return b.Health == nfs.Healthy })
	for _, s := range m.slices {
		if h := m.table.Health(s.Backend); healthy && s.Backend.IsValid() && (h == nfs.Down || h == nfs.Failing) {
			t.Fatalf("a slice names %s, which is %s, and another is healthy", s.Backend, h)
		}
		if _, known := m.table.Record(s.Backend); s.Backend.IsValid() && !known {
			t.Fatalf("a slice names %s, which the service does not have", s.Backend)
		}
	}
	if named := m.front.Backend.IsValid(); healthy && !named {
		t.Fatal("a backend is healthy, and none is published")
	}
}

func TestStableHasOneAddressThatIsNotDead(t *testing.T) {
	pool := []netip.AddrPort{at(0), at(1), at(2), at(3), at(4)}
	rapid.Check(t, func(t *rapid.T) {
		m := &stable{
			table: health.NewTable(health.DefaultSettings()), now: time.Unix(0, 0), alive: map[netip.AddrPort]bool{}, drain: map[netip.AddrPort]bool{},
			front: Frontend{Name: "files", Slot: -1, ClusterIP: netip.MustParseAddr("10.96.0.1")}, slices: map[discoveryv1.AddressType]Slice{},
		}
		probe := func(*rapid.T) {
			m.now = m.now.Add(time.Second)
			for _, b := range m.table.Backends() {
				r := health.Result{Backend: b, At: m.now}
				if !m.alive[b] {
					r.Error = "no answer"
				}
				m.table.Observe(r)
			}
			m.table.SetBackends(m.now, m.table.Backends())
		}
		backend := func(t *rapid.T) netip.AddrPort { return rapid.SampledFrom(pool).Draw(t, "backend") }
		t.Repeat(map[string]func(*rapid.T){
			"":       m.check,
			"probes": probe,
			"probes, until all are known": func(t *rapid.T) {
				for range 3 {
					probe(t)
				}
			},
			"backends change": func(t *rapid.T) {
				m.table.SetBackends(m.now, rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 0, len(pool), rapid.ID).Draw(t, "backends"))
			},
			"a server lives or dies":  func(t *rapid.T) { b := backend(t); m.alive[b] = !m.alive[b] },
			"a drain begins or ends":  func(t *rapid.T) { b := backend(t); m.drain[b] = !m.drain[b] },
			"the controller decides":  func(*rapid.T) { m.reconcile() },
			"the controller writes":   func(*rapid.T) { m.write() },
			"the controller restarts": func(*rapid.T) { m.unposted = nil },
		})
	})
}
