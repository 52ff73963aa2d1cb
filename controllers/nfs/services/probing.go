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

// pace is how often and how long servers are probed. Services of one pace share a
// pool of workers; as a rule there is one pace.
type pace struct{ interval, timeout time.Duration }

// Probing probes the servers of all services. It is safe for concurrent use.
type Probing struct {
	// Probe asks one server. nil: rpc.Client.
	Probe func(context.Context, rpc.Target, time.Duration) rpc.Result
	// Workers for each pace; 0: rpc.DefaultWorkers.
	Workers int

	report func(types.NamespacedName, netip.AddrPort, rpc.Result)

	mu    sync.Mutex
	ctx   context.Context // of Start; nil before. Probers end with it.
	paces map[pace]*paced
	group sync.WaitGroup
}

type paced struct {
	targets map[probed]rpc.Target
	prober  *rpc.Prober[probed]
	stop    context.CancelFunc
}

// Start probes until the context ends.
func (p *Probing) Start(ctx context.Context) error {
	p.mu.Lock()
	p.ctx = ctx
	for at, has := range p.paces {
		p.run(at, has)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.group.Wait()
	return nil
}

// Set replaces the targets of a service.
func (p *Probing) Set(service types.NamespacedName, settings health.Settings, targets []rpc.Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := paceOf(settings)
	want := map[probed]rpc.Target{}
	for _, t := range targets {
		want[probed{service, t.Address}] = t
	}
	if p.paces == nil {
		p.paces = map[pace]*paced{}
	}
	if len(want) > 0 && p.paces[at] == nil {
		p.paces[at] = &paced{targets: map[probed]rpc.Target{}}
		if p.ctx != nil {
			p.run(at, p.paces[at])
		}
	}
	for other, has := range p.paces {
		wanted := want
		if other != at {
			wanted = nil
		}
		p.replace(service, has, wanted)
		if len(has.targets) == 0 {
			if has.stop != nil {
				has.stop()
			}
			delete(p.paces, other)
		}
	}
}

// replace sets a service's targets of one pace.
func (p *Probing) replace(service types.NamespacedName, has *paced, want map[probed]rpc.Target) {
	changed := false
	for key := range has.targets {
		if _, keep := want[key]; key.service == service && !keep {
			delete(has.targets, key)
			changed = true
		}
	}
	for key, target := range want {
		if have, ok := has.targets[key]; !ok || !have.Equal(target) {
			has.targets[key] = target
			changed = true
		}
	}
	if changed && has.prober != nil {
		has.prober.Set(has.targets)
	}
}

// run starts the prober of a pace. The lock is held.
func (p *Probing) run(at pace, has *paced) {
	ctx, stop := context.WithCancel(p.ctx)
	has.stop = stop
	probe := p.Probe
	if probe == nil {
		client := &rpc.Client{Timeout: at.timeout}
		probe = func(ctx context.Context, target rpc.Target, _ time.Duration) rpc.Result {
			return client.Probe(ctx, target)
		}
	}
	has.prober = rpc.NewProber(
		func(ctx context.Context, target rpc.Target) rpc.Result { return probe(ctx, target, at.timeout) },
		func(key probed, result rpc.Result) { p.report(key.service, key.backend, result) },
		rpc.Schedule{Interval: at.interval, Workers: p.Workers},
	)
	has.prober.Set(maps.Clone(has.targets))
	prober := has.prober
	p.group.Go(func() { prober.Run(ctx) })
}

// grace is what a failover may take beyond its intervals: a second, half of which
// is left to write the slices.
const grace = 500 * time.Millisecond

// paceOf shortens the interval so that a server that hangs is out within failures
// times the interval and a second: its last probe ends a timeout after it began.
func paceOf(s health.Settings) pace {
	late := max(s.Timeout-grace, 0) / time.Duration(max(s.Failures, 1))
	return pace{interval: max(s.Interval-late, s.Interval/2), timeout: s.Timeout}
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
