package services

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
)

// probed names a backend of a service.
type probed struct {
	service types.NamespacedName
	backend netip.AddrPort
}

// Probing probes the servers of all services, with one pool of workers. It is safe for concurrent use.
type Probing struct {
	// Probe asks one server. nil: rpc.Client.
	Probe func(context.Context, rpc.Target) rpc.Result
	// Workers; 0: rpc.DefaultWorkers.
	Workers int

	report func(types.NamespacedName, netip.AddrPort, rpc.Result)

	mu      sync.Mutex
	targets map[probed]rpc.Target
	prober  *rpc.Prober[probed] // nil before Start
}

// Start probes until the context ends.
func (p *Probing) Start(ctx context.Context) error {
	probe := p.Probe
	if probe == nil {
		probe = (&rpc.Client{}).Probe
	}
	p.mu.Lock()
	p.prober = rpc.NewProber(probe, func(key probed, result rpc.Result) { p.report(key.service, key.backend, result) }, rpc.Schedule{Workers: p.Workers})
	p.prober.Set(p.targets)
	p.mu.Unlock()
	p.prober.Run(ctx)
	return nil
}

// Set replaces the targets of a service.
func (p *Probing) Set(service types.NamespacedName, settings health.Settings, targets []rpc.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := maps.Clone(p.targets)
	maps.DeleteFunc(p.targets, func(key probed, _ rpc.Target) bool { return key.service == service })
	if p.targets == nil {
		p.targets = map[probed]rpc.Target{}
	}
	for _, t := range targets {
		t.Interval, t.Timeout = intervalOf(settings), settings.Timeout
		p.targets[probed{service, t.Address}] = t
	}
	if p.prober != nil && !maps.EqualFunc(before, p.targets, rpc.Target.Equal) {
		p.prober.Set(p.targets)
	}
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

// targets are the probes of backends.
func targets(backends []netip.AddrPort, shares []string, versions []int32, mountPort uint16) []rpc.Target {
	list := make([]rpc.Target, len(backends))
	for i, b := range backends {
		list[i] = rpc.Target{Address: b, Shares: shares, MountPort: mountPort}
		for _, v := range versions {
			list[i].Versions = append(list[i].Versions, rpc.Version(v))
		}
	}
	return list
}
