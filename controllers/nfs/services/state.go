package services

import (
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/nfs/spec"
)

// state of a service between two passes. A restart may lose it.
type state struct {
	uid types.UID
	// good is the last spec without problems.
	good *spec.Service
	// wrote is the version of the last status written: older ones are stale.
	wrote string
	// counted is when nodes were last reported.
	counted time.Time

	mu      sync.Mutex // guards what follows: probes report at any time
	table   *health.Table
	pending []health.Result
	changes []health.Change
	// flushing: a flush of pending results is scheduled.
	flushing bool
}

func newState(uid types.UID) *state { return &state{uid: uid} }

// isStale reports whether an object is older than the last status written.
func (s *state) isStale(version string) bool {
	if s.wrote == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, s.wrote)
	return err == nil && order < 0
}

// update brings the table in line with backends and settings, and returns the
// members. Health is restored from status where the table does not know a backend.
func (s *state) update(now time.Time, settings health.Settings, backends []nfs.Backend, recorded []v1alpha1.NFSBackendStatus) []nfs.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.table == nil
	if first {
		s.table = health.NewTable(settings)
	}
	s.table.SetSettings(settings)
	addresses := make([]netip.AddrPort, len(backends))
	for i, b := range backends {
		addresses[i] = b.Addr
	}
	if first {
		s.restore(recorded)
	}
	s.changes = append(s.changes, s.table.SetBackends(now, addresses)...)
	members := make([]nfs.Member, len(backends))
	for i, b := range backends {
		members[i] = nfs.Member{Backend: b, Health: s.table.Health(b.Addr)}
	}
	return members
}

func (s *state) restore(recorded []v1alpha1.NFSBackendStatus) {
	for _, b := range recorded {
		addr, err := netip.ParseAddrPort(b.Address)
		if err != nil {
			continue
		}
		since := time.Time{}
		if b.Since != nil {
			since = b.Since.Time
		}
		s.table.Restore(addr, nfs.ParseHealth(b.Health), since, b.LastError)
	}
}

// add keeps the result of a probe. It reports whether the caller must schedule flush.
func (s *state) add(result health.Result) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, result)
	due := !s.flushing
	s.flushing = true
	return due
}

// flush passes pending results to the table together, so that the order in which probes ended decides nothing. It reports
// whether the status must change.
func (s *state) flush() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := s.pending
	s.pending, s.flushing = nil, false
	if s.table == nil {
		return false
	}
	before := map[netip.AddrPort]string{}
	for _, r := range results {
		before[r.Backend] = s.errorOf(r.Backend)
	}
	changes := s.table.Observe(results...)
	s.changes = append(s.changes, changes...)
	if len(changes) > 0 {
		return true
	}
	for backend, text := range before {
		if s.errorOf(backend) != text {
			return true
		}
	}
	return false
}

// errorOf is the error of a backend's last probes; empty while they succeed.
func (s *state) errorOf(backend netip.AddrPort) string {
	record, _ := s.table.Record(backend)
	if record.Failures == 0 {
		return ""
	}
	return record.LastError
}

// takeChanges returns the changes of health that are not reported yet.
func (s *state) takeChanges() []health.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.changes
	s.changes = nil
	return changes
}

func (s *state) guard() health.Guard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Guard()
}
