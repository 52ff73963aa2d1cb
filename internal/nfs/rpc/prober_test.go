package rpc

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// pool is a Prober in a bubble of fake time, whose targets take as long as the table says.
type pool struct {
	*Prober[int]
	interval time.Duration
	mu       sync.Mutex
	takes    map[netip.AddrPort]time.Duration
	starts   map[netip.AddrPort][]time.Duration // since the start of the pool
	running  map[netip.AddrPort]bool
	highest  int // probes at once
	reports  []int
	begun    time.Time
}

func startPool(t rapid.TB, ctx context.Context, by schedule) *pool {
	p := &pool{takes: map[netip.AddrPort]time.Duration{}, starts: map[netip.AddrPort][]time.Duration{}, running: map[netip.AddrPort]bool{}, begun: time.Now()}
	probe := func(ctx context.Context, target Target) Result {
		p.mu.Lock()
		must.True(t, !p.running[target.Address], "%s is probed twice at once", target.Address)
		p.running[target.Address] = true
		p.highest = max(p.highest, len(p.running))
		p.starts[target.Address] = append(p.starts[target.Address], time.Since(p.begun))
		takes := p.takes[target.Address]
		p.mu.Unlock()
		if takes > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(takes):
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.running, target.Address)
		return Result{Verdict: Healthy}
	}
	report := func(key int, _ Result) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.reports = append(p.reports, key)
	}
	p.Prober, p.interval = NewProber(probe, report), cmp.Or(by.Interval, 5*time.Second)
	p.workers, p.random = cmp.Or(by.Workers, p.workers), by.Random
	if p.random == nil {
		p.random = seeded(0)
	}
	go p.Run(ctx)
	return p
}

// schedule of a pool; the zero values are what the controller has.
type schedule struct {
	Interval time.Duration
	Workers  int
	Random   func() float64
}

func all(int) bool { return true }

// set replaces all targets; those without an interval get the pool's.
func (p *pool) set(targets map[int]Target) {
	timed := map[int]Target{}
	for key, target := range targets {
		target.Interval = cmp.Or(target.Interval, p.interval)
		timed[key] = target
	}
	p.Set(all, timed)
}

func targetNumber(n int) Target {
	return Target{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)}), 2049), Versions: []int32{V3}}
}

func numbered(n int) map[int]Target {
	targets := map[int]Target{}
	for i := range n {
		targets[i] = targetNumber(i)
	}
	return targets
}

// inBubble runs f with a pool in fake time, and ends the pool. Errors are those of rt.
func inBubble(t *testing.T, rt rapid.TB, by schedule, f func(p *pool)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f(startPool(rt, ctx, by))
		cancel()
		synctest.Wait()
	})
}

// pass lets time pass. Probes that are due have then begun, and the pool does not change.
func (p *pool) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func seeded(seed uint64) func() float64 { return rand.New(rand.NewPCG(seed, 2)).Float64 }

func fixed(value float64) func() float64 { return func() float64 { return value } }

func TestTargetsAreProbedOncePerInterval(t *testing.T) {
	inBubble(t, t, schedule{Interval: 10 * time.Second, Workers: 4, Random: seeded(1)}, func(p *pool) {
		p.set(numbered(50))
		p.pass(10 * time.Minute)
		var phases []time.Duration
		for _, target := range numbered(50) {
			starts := p.starts[target.Address]
			if len(starts) < 60 || len(starts) > 60*10/7+1 || starts[0] != 0 {
				t.Fatalf("%s: %d probes from %s on in 10 minutes", target.Address, len(starts), starts[0])
			}
			phases = append(phases, starts[1])
			for i := 2; i < len(starts); i++ {
				pause := starts[i] - starts[i-1]
				must.True(t, pause >= 7500*time.Millisecond && pause <= 10*time.Second, "%s: %s between two probes", target.Address, pause)
			}
		}
		first, last := slices.Min(phases), slices.Max(phases)
		must.True(t, last-first >= 5*time.Second, "the second probes of all targets are between %s and %s", first, last)
	})
}

func TestHungTargetsDelayOthersWithinTheBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const timeout = time.Second
		targets := rapid.IntRange(1, 60).Draw(rt, "targets")
		hung := rapid.IntRange(0, targets).Draw(rt, "hung")
		workers := rapid.IntRange(1, 20).Draw(rt, "workers")
		seed := rapid.Uint64().Draw(rt, "seed")
		inBubble(t, rt, schedule{Interval: 5 * time.Second, Workers: workers, Random: seeded(seed)}, func(p *pool) {
			for i := range hung {
				p.takes[targetNumber(i).Address] = timeout
			}
			p.set(numbered(targets))
			p.pass(2 * time.Minute)
			must.True(rt, p.highest <= workers, "%d probes at once with %d workers", p.highest, workers)
			longest := 5*time.Second + time.Duration(hung/workers)*timeout
			must.True(rt, len(p.starts) == targets && !shortOf(p.starts, 2*time.Minute, longest), "targets starve: %v", p.starts)
		})
	})
}

// shortOf reports whether a target was left out for longer than the longest pause.
func shortOf(starts map[netip.AddrPort][]time.Duration, end, longest time.Duration) bool {
	for _, s := range starts {
		last := time.Duration(0)
		for _, at := range append(slices.Clone(s), end) {
			if at-last > longest {
				return true
			}
			last = at
		}
	}
	return false
}

func TestSetProbesOnlyWhatIsNew(t *testing.T) {
	inBubble(t, t, schedule{Interval: time.Hour, Random: fixed(0.5)}, func(p *pool) {
		targets := numbered(3)
		p.set(targets)
		synctest.Wait()
		targets[1], targets[3] = targetNumber(9), targetNumber(3)
		delete(targets, 2)
		p.set(targets)
		synctest.Wait()
		must.Equal(t, slices.Sorted(slices.Values(p.reports)), []int{0, 1, 1, 2, 3}, "reports")
		p.mu.Lock()
		p.reports = nil
		p.mu.Unlock()
		p.pass(time.Hour)
		must.Equal(t, slices.Sorted(slices.Values(p.reports)), []int{0, 1, 3}, "reports an hour later")
		must.Equal(t, len(p.starts[targetNumber(2).Address]), 1, "probes of the removed target")
	})
}

func TestResultsOfRemovedTargetsAreDropped(t *testing.T) {
	inBubble(t, t, schedule{Interval: 5 * time.Second}, func(p *pool) {
		p.takes[targetNumber(0).Address] = time.Second
		p.set(map[int]Target{0: targetNumber(0)})
		synctest.Wait()
		p.set(map[int]Target{0: targetNumber(1)})
		p.pass(time.Minute)
		if old, current := len(p.starts[targetNumber(0).Address]), len(p.starts[targetNumber(1).Address]); old != 1 || len(p.reports) != current || current < 10 {
			t.Errorf("%d probes of the old target, %d of the new one, %d reports", old, current, len(p.reports))
		}
	})
}

func TestRunEndsWithoutReportsOfCanceledProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := startPool(t, ctx, schedule{})
		p.takes[targetNumber(0).Address] = time.Hour
		p.set(numbered(1))
		synctest.Wait()
		cancel()
		synctest.Wait() // the test fails if goroutines are left
		must.True(t, len(p.starts) == 1 && len(p.reports) == 0, "%d probes, %d reports", len(p.starts), len(p.reports))
	})
}

func TestLongProbesAreNotMadeUpFor(t *testing.T) {
	inBubble(t, t, schedule{Interval: time.Second, Random: fixed(0)}, func(p *pool) {
		p.takes[targetNumber(0).Address] = 10 * time.Second
		p.set(numbered(1))
		synctest.Wait()
		p.pass(35 * time.Second)
		must.Equal(t, p.starts[targetNumber(0).Address], []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second})
	})
}

func TestReportMaySetTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var p *Prober[int]
		reports := make(chan int, 10)
		p = NewProber(func(context.Context, Target) Result { return Result{} }, func(key int, _ Result) {
			reports <- key
			p.Set(all, map[int]Target{2: {Interval: time.Hour}})
		})
		p.Set(all, map[int]Target{1: {Interval: time.Hour}})
		go p.Run(ctx)
		first, second := <-reports, <-reports
		must.True(t, first == 1 && second == 2, "reports of %d and %d", first, second)
	})
}

func TestSetLeavesOtherGroupsAlone(t *testing.T) {
	inBubble(t, t, schedule{Interval: 10 * time.Second, Random: fixed(0)}, func(p *pool) {
		p.set(map[int]Target{0: targetNumber(0), 1: targetNumber(1)})
		p.Set(func(key int) bool { return key == 1 }, nil)
		p.pass(time.Minute)
		must.Equal(t, len(p.starts[targetNumber(0).Address]), 8, "probes of the target of another group")
		must.Equal(t, len(p.starts[targetNumber(1).Address]), 0, "probes of the removed target")
	})
}

// The queue still holds the turn of the former target.
func TestChangedTargetKeepsItsOwnTurns(t *testing.T) {
	inBubble(t, t, schedule{Interval: 10 * time.Second, Random: fixed(0.5)}, func(p *pool) {
		p.set(map[int]Target{0: targetNumber(0)}) // due again after 5 s
		p.pass(3 * time.Second)
		p.set(map[int]Target{0: targetNumber(1)})
		p.pass(20 * time.Second)
		must.Equal(t, p.starts[targetNumber(1).Address], []time.Duration{3 * time.Second, 8 * time.Second, 17500 * time.Millisecond})
	})
}

func TestTargetHasItsOwnInterval(t *testing.T) {
	inBubble(t, t, schedule{Interval: 10 * time.Second, Random: fixed(0)}, func(p *pool) {
		rare := targetNumber(1)
		rare.Interval = time.Minute
		p.set(map[int]Target{0: targetNumber(0), 1: rare})
		p.pass(2 * time.Minute)
		must.Equal(t, len(p.starts[targetNumber(0).Address]), 14, "probes every 10 s") // at 0, 0, 10, …, 120
		must.Equal(t, p.starts[rare.Address], []time.Duration{0, 0, time.Minute, 2 * time.Minute})
	})
}
