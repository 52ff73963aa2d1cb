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

// Change of one backend's health.
type Change struct {
	Backend  netip.AddrPort
	From, To nfs.Health
	At       time.Time
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

// SetBackends adds new backends as Unknown, and forgets missing ones. If all remaining backends are Down, all become
// Failing.
func (t *Table) SetBackends(now time.Time, backends []netip.AddrPort) []Change {
	before := t.records
	t.records = make(map[netip.AddrPort]*Record, len(backends))
	for _, b := range backends {
		t.records[b] = cmp.Or(before[b], &Record{})
	}
	return t.settle(now)
}

// SetSettings changes the settings. They count from the next result on.
func (t *Table) SetSettings(settings Settings) { t.settings = settings }

// Observe takes results of probes and returns the changes, sorted by backend. Pass the results of one round in one call: the
// order in which probes ended then decides nothing. Results of unknown backends, and results that are not newer than the
// backend's last one, are ignored.
func (t *Table) Observe(results ...Result) []Change {
	var now time.Time
	for _, result := range results {
		r := t.records[result.Backend]
		if r == nil || !result.At.After(r.LastProbe) {
			continue
		}
		r.LastProbe = result.At
		if result.At.After(now) {
			now = result.At
		}
		if result.Error == "" {
			r.Failures, r.Successes = 0, r.Successes+1
		} else {
			r.Failures, r.Successes, r.LastError = r.Failures+1, 0, result.Error
		}
	}
	return t.settle(now)
}

// settle derives health from the counts: first it returns backends, then it takes backends out.
func (t *Table) settle(now time.Time) []Change {
	var changes []Change
	set := func(b netip.AddrPort, to nfs.Health) {
		r := t.records[b]
		if r.Health == to {
			return
		}
		change := Change{Backend: b, From: r.Health, To: to, At: now}
		if to != nfs.Healthy {
			change.Error = r.LastError
		}
		changes = append(changes, change)
		r.Health, r.Since = to, now
	}
	var failing []netip.AddrPort
	down := 0
	for _, b := range t.Backends() {
		r := t.records[b]
		switch {
		case r.Successes >= t.settings.Successes, r.Successes > 0 && r.Health == nfs.Unknown:
			set(b, nfs.Healthy)
		case r.Health == nfs.Down:
			down++
		case r.Failures >= t.settings.Failures:
			failing = append(failing, b)
		}
	}
	to := nfs.Down
	if down+len(failing) > t.settings.maxDown(len(t.records)) {
		to = nfs.Failing
	}
	for _, b := range failing {
		set(b, to)
	}
	if down == len(t.records) {
		for _, b := range t.Backends() {
			set(b, nfs.Failing)
		}
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
