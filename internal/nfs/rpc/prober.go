package rpc

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Defaults of Schedule.
const (
	DefaultInterval = 5 * time.Second
	DefaultWorkers  = 256
	DefaultJitter   = 0.1
)

// Schedule says when a Prober probes. Its zero value has the defaults.
type Schedule struct {
	// Interval is the longest time from the start of one probe of a target to the start of its next one, as
	// long as a worker is free and probes are shorter than that. 0: DefaultInterval.
	Interval time.Duration
	// Jitter is the share of Interval, below 1, by which it is shortened at random. 0: DefaultJitter.
	Jitter float64
	// Workers is how many probes run at once, each with at most two connections open. 0: DefaultWorkers.
	Workers int
	// Random returns numbers in [0, 1). nil: math/rand.
	Random func() float64
}

// Prober probes many targets again and again. The target of a key is never probed twice at once. A new target is
// probed at once, then at a random time within one interval, so that targets added together spread out.
//
// A probe holds one worker for at most the timeout of Probe plus the time of Report. Workers take targets in the
// order in which they became due. So with T targets and W workers, h of whose targets hang, a probe starts at most
// ⌊h/W⌋ timeouts after it is due: at once while h < W. Result.Waited is the measured value. In the long run,
// Workers ≥ T × timeout / Interval keeps the interval even if every target hangs.
type Prober[K comparable] struct {
	probe    func(context.Context, Target) Result
	report   func(K, Result)
	schedule Schedule
	queue    workqueue.TypedDelayingInterface[K]

	mu      sync.Mutex
	entries map[K]*entry
}

// entry is one target of a Prober. A target that changes gets a new entry.
type entry struct {
	target Target
	due    time.Time
	probed bool
}

// NewProber makes a Prober that calls probe, as a rule Client.Probe, and report with each result. Report is
// called from many goroutines, but for one target in the order of its probes; until it returns, the target is
// not probed again. Report may call Set.
func NewProber[K comparable](probe func(context.Context, Target) Result, report func(K, Result), schedule Schedule) *Prober[K] {
	schedule.Interval = cmp.Or(schedule.Interval, DefaultInterval)
	schedule.Workers = cmp.Or(schedule.Workers, DefaultWorkers)
	schedule.Jitter = cmp.Or(schedule.Jitter, DefaultJitter)
	if schedule.Random == nil {
		schedule.Random = rand.Float64
	}
	return &Prober[K]{probe: probe, report: report, schedule: schedule, queue: workqueue.NewTypedDelayingQueue[K](), entries: map[K]*entry{}}
}

// Set replaces all targets. Equal ones keep their turn; new and changed ones are due now, a changed one once the
// running probe of its key has ended. No result of a target that was removed or changed is reported after Set, but
// for a Report that has begun.
func (p *Prober[K]) Set(targets map[K]Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.entries, func(key K, e *entry) bool {
		target, keep := targets[key]
		return !keep || !target.Equal(e.target)
	})
	for key, target := range targets {
		if p.entries[key] == nil {
			p.entries[key] = &entry{target: target, due: time.Now()}
			p.queue.Add(key)
		}
	}
}

// Run probes until the context ends, and returns once no probe runs any more.
func (p *Prober[K]) Run(ctx context.Context) {
	context.AfterFunc(ctx, p.queue.ShutDown)
	var workers sync.WaitGroup
	for range p.schedule.Workers {
		workers.Go(func() {
			for key, ended := p.queue.Get(); !ended && ctx.Err() == nil; key, ended = p.queue.Get() {
				p.run(ctx, key)
				p.queue.Done(key)
			}
		})
	}
	workers.Wait()
}

func (p *Prober[K]) run(ctx context.Context, key K) {
	e, started := p.entry(key), time.Now()
	if e == nil {
		return
	}
	if early := e.due.Sub(started); early > 0 { // a target that the key had before was due now
		p.queue.AddAfter(key, early)
		return
	}
	result := p.probe(ctx, e.target)
	result.Waited = started.Sub(e.due)
	if ctx.Err() == nil && p.entry(key) == e {
		p.report(key, result)
	}
	p.again(key, e, started)
}

func (p *Prober[K]) entry(key K) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entries[key]
}

// again queues the next probe of a target, unless the target was removed or changed. Turns missed during a long
// probe are not repeated: the target is then due now.
func (p *Prober[K]) again(key K, e *entry, started time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.entries[key] != e {
		return
	}
	now := time.Now()
	e.due = started.Add(p.pause(e))
	if e.due.Before(now) {
		e.due = now
	}
	p.queue.AddAfter(key, e.due.Sub(now))
}

// pause is the time between the starts of two probes of a target.
func (p *Prober[K]) pause(e *entry) time.Duration {
	interval, random := float64(cmp.Or(e.target.Interval, p.schedule.Interval)), p.schedule.Random()
	if !e.probed {
		e.probed = true
		return time.Duration(interval * random)
	}
	return time.Duration(interval * (1 - p.schedule.Jitter*random))
}
