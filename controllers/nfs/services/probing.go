package services

import (
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
)

// probed names a backend of a service.
type probed struct {
	service types.NamespacedName
	backend netip.AddrPort
}

// grace is what a failover may take beyond its intervals: a second, half of which
// is left to write the slices.
const grace = 500 * time.Millisecond

// intervalOf shortens the interval so that a server that hangs is out within failures
// times the interval and a second: its last probe ends a timeout after it began.
func intervalOf(s health.Settings) time.Duration {
	late := max(s.Timeout-grace, 0) / time.Duration(max(s.Failures, 1))
	return max(s.Interval-late, s.Interval/2)
}

// setTargets replaces the probes of a service.
func (r *Reconciler) setTargets(service types.NamespacedName, members []nfs.Backend, by definition.Service) {
	targets := map[probed]rpc.Target{}
	for _, m := range members {
		targets[probed{service, m.Addr}] = rpc.Target{
			Address: m.Addr, Versions: by.Versions, Shares: by.Shares, MountPort: by.MountPort, Interval: intervalOf(by.Health), Timeout: by.Health.Timeout,
		}
	}
	r.prober.Set(func(key probed) bool { return key.service == service }, targets)
}
