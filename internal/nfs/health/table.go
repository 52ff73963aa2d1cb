package health

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Result of one probe.
type Result struct {
	Backend netip.AddrPort
	// At is when the probe ended.
	At time.Time
	// Error is empty where the probe succeeded.
	Error string
}

// Record is the state of one backend.
type Record struct {
	Health nfs.Health
	// Since is when Health became what it is; zero while it is Unknown.
	Since time.Time
	// Failures and Successes in a row; one of the two is 0.
	Failures, Successes int
	// LastProbe is when the last probe ended. LastError stays when a probe succeeds.
	LastProbe time.Time
	LastError string
}

// Error of the last probes; empty while they succeed.
func (r Record) Error() string {
	if r.Failures == 0 {
		return ""
	}
	return r.LastError
}

// Change of one backend's health.
type Change struct {
	Backend  netip.AddrPort
	From, To nfs.Health
	// Error of the last failed probe; empty if To is Healthy.
	Error string
}

// Table holds the health of the backends of one service. It is not safe for concurrent use.
type Table struct {
	settings Settings
	records  map[netip.AddrPort]*Record
}

// NewTable returns a table without backends.
func NewTable(settings Settings) *Table {
	return &Table{settings: settings, records: map[netip.AddrPort]*Record{}}
}

// Restore sets the health of a backend from a record, such as the service's status.
// After a restart nothing moves: a backend that was Down is Down until it answers.
func (t *Table) Restore(backend netip.AddrPort, health nfs.Health, since time.Time, lastError string) {
	r := &Record{Health: health, Since: since, LastError: lastError}
	if health == nfs.Failing || health == nfs.Down {
		r.Failures = t.settings.Failures
	}
	t.records[backend] = r
}

// SetBackends adds new backends as Unknown, forgets missing ones, and decides on the health of all by the results since the
// last call: results of one outage are judged together. If all remaining backends are Down, those become Failing that have
// answered since, or all.
func (t *Table) SetBackends(now time.Time, backends []netip.AddrPort) []Change {
	before := t.records
	t.records = make(map[netip.AddrPort]*Record, len(backends))
	for _, b := range backends {
		t.records[b] = cmp.Or(before[b], &Record{})
	}
	return t.settle(now)
}

// SetSettings changes the settings. They count from the next SetBackends on.
func (t *Table) SetSettings(settings Settings) { t.settings = settings }

// Observe counts the result of a probe. It reports news: SetBackends may change the health of a backend now, or the error of
// the backend's probes changed. Results of unknown backends, and results that are not newer than the backend's last one, are
// ignored.
func (t *Table) Observe(result Result) bool {
	r := t.records[result.Backend]
	if r == nil || !result.At.After(r.LastProbe) {
		return false
	}
	before := r.Error()
	r.LastProbe = result.At
	if result.Error == "" {
		r.Failures, r.Successes = 0, r.Successes+1
	} else {
		r.Failures, r.Successes, r.LastError = r.Failures+1, 0, result.Error
	}
	return r.Failures == t.settings.Failures || t.hasRecovered(r) && r.Health != nfs.Healthy || r.Error() != before
}

func (t *Table) hasFailed(r *Record) bool { return r.Failures >= t.settings.Failures }

func (t *Table) hasRecovered(r *Record) bool {
	return r.Successes >= t.settings.Successes || r.Successes > 0 && r.Health == nfs.Unknown
}

// settle derives health from the counts: first it returns backends, then it takes backends out.
func (t *Table) settle(now time.Time) []Change {
	var changes []Change
	set := func(b netip.AddrPort, to nfs.Health) {
		r := t.records[b]
		if r.Health == to {
			return
		}
		changes = append(changes, Change{Backend: b, From: r.Health, To: to, Error: r.Error()})
		r.Health, r.Since = to, now
	}
	var failing, down []netip.AddrPort
	for _, b := range t.Backends() {
		r := t.records[b]
		switch {
		case t.hasRecovered(r):
			set(b, nfs.Healthy)
		case r.Health == nfs.Down:
			down = append(down, b)
		case t.hasFailed(r):
			failing = append(failing, b)
		}
	}
	if len(down) == len(t.records) {
		for _, b := range down {
			if t.hasFailed(t.records[b]) {
				failing = append(failing, b)
			} else {
				set(b, nfs.Failing)
			}
		}
		down = nil
	}
	to := nfs.Down
	if len(down)+len(failing) > t.settings.maxDown(len(t.records)) {
		to = nfs.Failing
	}
	for _, b := range failing {
		set(b, to)
	}
	return changes
}

// Backends returns the backends of the table, sorted.
func (t *Table) Backends() []netip.AddrPort {
	return slices.SortedFunc(maps.Keys(t.records), netip.AddrPort.Compare)
}

// Record returns the state of a backend; false if the table lacks the backend.
func (t *Table) Record(backend netip.AddrPort) (Record, bool) {
	r := t.records[backend]
	if r == nil {
		return Record{}, false
	}
	return *r, true
}

// Health of a backend: Unknown if the table lacks the backend.
func (t *Table) Health(backend netip.AddrPort) nfs.Health {
	r, _ := t.Record(backend)
	return r.Health
}
