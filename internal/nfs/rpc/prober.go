package rpc

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"
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
	// Batch starts probes together that are due within this time, so early by at most this: waking up for each
	// probe costs more CPU than the probe. It is at most half of the shortest interval. 0: 5 % of Interval.
	Batch time.Duration
	// Workers is how many probes run at once, each with at most two connections open. 0: DefaultWorkers.
	Workers int
	// Clock schedules probes. nil: the real clock.
	Clock clock.Clock
	// Random returns numbers in [0, 1). nil: math/rand.
	Random func() float64
}

// Prober probes many targets again and again. A target is never probed twice at once. A new target is probed
// at once, then at a random time within one interval, so that targets added together spread out.
//
// A probe holds one worker for at most the timeout of Probe plus the time of Report. Workers go to the targets
// that are due longest. So with T targets and W workers, h of whose targets hang, a probe starts at most
// ⌊h/W⌋ timeouts after it is due: at once while h < W. Result.Waited is the measured value. In the long run,
// Workers ≥ T × timeout / Interval keeps the interval even if every target hangs.
type Prober[K comparable] struct {
	probe    func(context.Context, Target) Result
	report   func(K, Result)
	schedule Schedule

	mu      sync.Mutex
	entries map[K]*entry[K]
	queue   queue[K]
	running int
	wake    chan struct{}
}

// NewProber makes a Prober that calls probe, as a rule Client.Probe, and report with each result. Report is
// called from many goroutines, but for one target in the order of its probes; until it returns, the target is
// not probed again. Report may call Set.
func NewProber[K comparable](probe func(context.Context, Target) Result, report func(K, Result), schedule Schedule) *Prober[K] {
	schedule.Interval = cmp.Or(schedule.Interval, DefaultInterval)
	schedule.Workers = cmp.Or(schedule.Workers, DefaultWorkers)
	schedule.Jitter = cmp.Or(schedule.Jitter, DefaultJitter)
	shortest := time.Duration(float64(schedule.Interval) * (1 - schedule.Jitter))
	schedule.Batch = min(cmp.Or(schedule.Batch, schedule.Interval/20), shortest/2)
	if schedule.Clock == nil {
		schedule.Clock = clock.RealClock{}
	}
	if schedule.Random == nil {
		schedule.Random = rand.Float64
	}
	return &Prober[K]{probe: probe, report: report, schedule: schedule, entries: map[K]*entry[K]{}, wake: make(chan struct{}, 1)}
}

// Set replaces all targets. Equal ones keep their turn; new and changed ones are due now. No result of a target
// that was removed or changed is reported after Set, but for a Report that has begun.
func (p *Prober[K]) Set(targets map[K]Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, e := range p.entries {
		if target, keep := targets[key]; keep && target.Equal(e.target) {
			continue
		}
		e.gone = true
		delete(p.entries, key)
		if e.index >= 0 {
			p.queue.remove(e)
		}
	}
	now := p.schedule.Clock.Now()
	for key, target := range targets {
		if p.entries[key] == nil {
			e := &entry[K]{key: key, target: target, first: true}
			p.entries[key] = e
			p.push(e, now)
		}
	}
	p.signal()
}

// Run probes until the context ends, and returns once no probe runs any more.
func (p *Prober[K]) Run(ctx context.Context) {
	var probes sync.WaitGroup
	defer probes.Wait()
	timer := p.schedule.Clock.NewTimer(p.schedule.Interval)
	defer timer.Stop()
	for ctx.Err() == nil {
		for early := time.Duration(0); ; early = p.schedule.Batch {
			e, due := p.next(early)
			if e == nil {
				break
			}
			probes.Go(func() { p.run(ctx, e, due) })
		}
		timer.Reset(p.idle())
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-timer.C():
		}
	}
}

// next takes the target with the earliest due time, if that is at most early ahead and a worker is free.
func (p *Prober[K]) next(early time.Duration) (*entry[K], time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running >= p.schedule.Workers || len(p.queue) == 0 || p.queue[0].due.After(p.schedule.Clock.Now().Add(early)) {
		return nil, time.Time{}
	}
	p.running++
	e := p.queue.take()
	return e, e.due
}

// idle is the time until the next probe is due, unless a wake-up comes first.
func (p *Prober[K]) idle() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running >= p.schedule.Workers || len(p.queue) == 0 {
		return p.schedule.Interval // the end of a probe and Set wake the loop
	}
	return max(0, p.queue[0].due.Sub(p.schedule.Clock.Now()))
}

func (p *Prober[K]) run(ctx context.Context, e *entry[K], due time.Time) {
	started := p.schedule.Clock.Now()
	result := p.probe(ctx, e.target)
	result.Waited = max(0, started.Sub(due))
	if ctx.Err() == nil && p.wanted(e) {
		p.report(e.key, result)
	}
	p.finish(e, started)
}

func (p *Prober[K]) wanted(e *entry[K]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !e.gone
}

func (p *Prober[K]) finish(e *entry[K], started time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := p.running == p.schedule.Workers
	p.running--
	if !e.gone {
		p.push(e, started.Add(p.pause(e)))
	}
	if full || e.index == 0 { // else Run sleeps for the right time already
		p.signal()
	}
}

// pause is the time between the starts of two probes of a target.
func (p *Prober[K]) pause(e *entry[K]) time.Duration {
	random := p.schedule.Random()
	if e.first {
		e.first = false
		return time.Duration(float64(p.schedule.Interval) * random)
	}
	return time.Duration(float64(p.schedule.Interval) * (1 - p.schedule.Jitter*random))
}

// push queues an entry. Turns missed during a long probe are not repeated: the entry is then due now.
func (p *Prober[K]) push(e *entry[K], due time.Time) {
	if now := p.schedule.Clock.Now(); due.Before(now) {
		due = now
	}
	e.due = due
	p.queue.add(e)
}

// signal wakes Run. One pending wake-up is enough.
func (p *Prober[K]) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
