package services

import (
	"net/netip"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
)

// state of a service between two passes. A restart may lose it.
type state struct {
	uid types.UID
	// good is the last spec without problems.
	good *definition.Service
	// wrote is the version of the last status written: older ones are stale.
	wrote string
	// counted is when nodes were last reported.
	counted time.Time
	// changes of health that are not reported yet: a pass may fail before its report.
	changes []health.Change

	mu    sync.Mutex // guards the table: probes report at any time
	table *health.Table
}

// newState begins with the health that the status records.
func newState(service *v1alpha1.NFSService) *state {
	parsed, _ := definition.Read(service)
	s := &state{uid: service.UID, table: health.NewTable(parsed.Health)}
	for _, b := range service.Status.Backends {
		if addr, err := netip.ParseAddrPort(b.Address); err == nil {
			s.table.Restore(addr, nfs.ParseHealth(b.Health), ptr.Deref(b.Since, metav1.Time{}).Time, b.LastError)
		}
	}
	return s
}

// isStale reports whether an object is older than the last status written.
func (s *state) isStale(version string) bool {
	if s.wrote == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, s.wrote)
	return err == nil && order < 0
}

// update brings the table in line with backends and settings, and decides on their health, which it returns in backends.
func (s *state) update(now time.Time, settings health.Settings, backends []nfs.Backend) []nfs.Backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.SetSettings(settings)
	addresses := make([]netip.AddrPort, len(backends))
	for i, b := range backends {
		addresses[i] = b.Addr
	}
	s.changes = append(s.changes, s.table.SetBackends(now, addresses)...)
	for i, b := range backends {
		backends[i].Health = s.table.Health(b.Addr)
	}
	return backends
}

// observe counts the result of a probe, and reports whether a pass should follow.
func (s *state) observe(result health.Result) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Observe(result)
}

func (s *state) guard() health.Guard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Guard()
}
