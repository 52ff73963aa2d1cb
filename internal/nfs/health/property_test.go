package health

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 300, 80) }

// The model keeps all results of each backend and knows nothing of the table.
type model struct {
	table    *Table
	settings Settings
	now      time.Time
	backends []netip.AddrPort
	results  map[netip.AddrPort][]bool
}

// inARow counts equal results at the end.
func (m *model) inARow(b netip.AddrPort, success bool) int {
	n := 0
	for i := len(m.results[b]) - 1; i >= 0 && m.results[b][i] == success; i-- {
		n++
	}
	return n
}

func (m *model) check(t *rapid.T, before map[netip.AddrPort]nfs.Health) {
	down, newlyDown, in := 0, 0, 0
	for _, b := range m.backends {
		h := m.table.Health(b)
		failures, successes := m.inARow(b, false), m.inARow(b, true)
		if h == nfs.Down {
			down++
			if before[b] != nfs.Down {
				newlyDown++
				if failures < m.settings.Failures {
					t.Fatalf("%s is taken out after %d failures in a row", b, failures)
				}
			}
		} else {
			in++
		}
		if h == nfs.Healthy && failures >= m.settings.Failures {
			t.Fatalf("%s is Healthy after %d failures in a row", b, failures)
		}
		if h != nfs.Healthy && successes >= m.settings.Successes {
			t.Fatalf("%s is %s after %d successes in a row", b, h, successes)
		}
		if (before[b] == nfs.Down || before[b] == nfs.Failing) && h == nfs.Healthy && successes < m.settings.Successes {
			t.Fatalf("%s returns after %d successes", b, successes)
		}
		if h == nfs.Failing && !m.table.Guard().Active() {
			t.Fatal("a backend is kept in use and the guard does not say so")
		}
	}
	if len(m.backends) > 0 && in == 0 {
		t.Fatal("all backends are out")
	}
	if newlyDown > 0 && down*100 > len(m.backends)*m.settings.MaxEjected {
		t.Fatalf("%d of %d are out, %d of them now; at most %d %% may be", down, len(m.backends), newlyDown, m.settings.MaxEjected)
	}
}

func TestBackendsAreNeverAllOut(t *testing.T) {
	pool := servers(12)
	rapid.Check(t, func(t *rapid.T) {
		m := &model{now: begin, results: map[netip.AddrPort][]bool{}, settings: DefaultSettings()}
		m.settings.MaxEjected = rapid.SampledFrom([]int{0, 30, 50, 50, 100}).Draw(t, "maxEjected")
		m.table = NewTable(m.settings)
		before := map[netip.AddrPort]nfs.Health{}
		setBackends := func(t *rapid.T) {
			m.backends = rapid.SliceOfNDistinct(rapid.SampledFrom(pool), 1, len(pool), rapid.ID).Draw(t, "backends")
			for b := range m.results {
				if !slices.Contains(m.backends, b) {
					delete(m.results, b)
				}
			}
			m.table.SetBackends(m.now, m.backends)
		}
		setBackends(t)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.check(t, before)
				before = map[netip.AddrPort]nfs.Health{}
				for _, b := range m.backends {
					before[b] = m.table.Health(b)
				}
			},
			"backends change": setBackends,
			"a round of probes": func(t *rapid.T) {
				m.now = m.now.Add(time.Second)
				success := rapid.SliceOfN(rapid.SampledFrom([]bool{true, false, false}), len(m.backends), len(m.backends)).Draw(t, "success")
				m.observe(t, success, m.backends...)
			},
			"the same again": func(t *rapid.T) {
				m.now = m.now.Add(time.Second)
				var success []bool
				for _, b := range m.backends {
					success = append(success, len(m.results[b]) > 0 && m.inARow(b, true) > 0)
				}
				m.observe(t, success, m.backends...)
			},
			"one probe": func(t *rapid.T) {
				m.now = m.now.Add(time.Second)
				m.observe(t, []bool{rapid.Bool().Draw(t, "success")}, rapid.SampledFrom(m.backends).Draw(t, "backend"))
			},
		})
	})
}

// observe probes backends. Without news, nothing changes.
func (m *model) observe(t *rapid.T, success []bool, backends ...netip.AddrPort) {
	news := false
	for i, b := range backends {
		m.results[b] = append(m.results[b], success[i])
		r := Result{Backend: b, At: m.now}
		if !success[i] {
			r.Error = "no answer"
		}
		news = m.table.Observe(r) || news
	}
	if changes := m.table.SetBackends(m.now, m.backends); len(changes) > 0 && !news {
		t.Fatalf("no news, and %v", changes)
	}
}
