package rpc

import (
	"context"
	"maps"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// workers is how many probes run at once, each with at most two connections open.
const workers = 256

// jitter is the share of the interval by which it is shortened at random.
const jitter = 0.1

// Prober probes many targets again and again. The target of a key is never probed twice at once. A new target is
// probed at once, then at a random time within one interval, so that targets added together spread out.
//
// A probe holds one worker for at most the timeout of Probe plus the time of Report. Workers take targets in the
// order in which they became due. So with T targets and W workers, h of whose targets hang, a probe starts at most
// ⌊h/W⌋ timeouts after it is due: at once while h < W. In the long run, W ≥ T × timeout / interval keeps the interval
// even if every target hangs.
type Prober[K comparable] struct {
	probe   func(context.Context, Target) Result
	report  func(K, Result)
	queue   workqueue.TypedDelayingInterface[K]
	workers int
	random  func() float64 // in [0, 1)

	mu      sync.Mutex
	entries map[K]*entry
}

// entry is one target of a Prober. A target that changes gets a new entry.
type entry struct {
	target Target
	due    time.Time
	probed bool
}

// NewProber makes a Prober that calls probe, as a rule Probe, and report with each result. Report is
// called from many goroutines, but for one target in the order of its probes; until it returns, the target is
// not probed again. Report may call Set.
func NewProber[K comparable](probe func(context.Context, Target) Result, report func(K, Result)) *Prober[K] {
	return &Prober[K]{probe: probe, report: report, queue: workqueue.NewTypedDelayingQueue[K](), workers: workers, random: rand.Float64, entries: map[K]*entry{}}
}

// Set replaces the targets whose keys are of a group. Equal ones keep their turn; new and changed ones are due now, a
// changed one once the running probe of its key has ended. No result of a target that was removed or changed is reported
// after Set, but for a Report that has begun.
func (p *Prober[K]) Set(group func(K) bool, targets map[K]Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.entries, func(key K, e *entry) bool {
		target, keep := targets[key]
		return group(key) && (!keep || !reflect.DeepEqual(target, e.target))
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
	for range p.workers {
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
	interval, random := float64(e.target.Interval), p.random()
	if !e.probed {
		e.probed = true
		return time.Duration(interval * random)
	}
	return time.Duration(interval * (1 - jitter*random))
}
