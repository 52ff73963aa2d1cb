package rpc

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// pool is a Prober in a bubble of fake time, whose targets take as long as the table says.
type pool struct {
	*Prober[int]
	mu      sync.Mutex
	takes   map[netip.AddrPort]time.Duration
	starts  map[netip.AddrPort][]time.Duration // since the start of the pool
	running map[netip.AddrPort]bool
	highest int // probes at once
	waited  time.Duration
	reports []int
	begun   time.Time
}

func startPool(t rapid.TB, ctx context.Context, schedule Schedule) *pool {
	p := &pool{takes: map[netip.AddrPort]time.Duration{}, starts: map[netip.AddrPort][]time.Duration{}, running: map[netip.AddrPort]bool{}, begun: time.Now()}
	probe := func(ctx context.Context, target Target) Result {
		p.mu.Lock()
		if p.running[target.Address] {
			t.Errorf("%s is probed twice at once", target.Address)
		}
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
		return Result{Reason: Serving}
	}
	report := func(key int, r Result) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waited = max(p.waited, r.Waited)
		p.reports = append(p.reports, key)
	}
	p.Prober = NewProber(probe, report, schedule)
	go p.Run(ctx)
	return p
}

func targetNumber(n int) Target {
	return Target{Address: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)}), PortNFS), Versions: []Version{V3}}
}

func numbered(n int) map[int]Target {
	targets := map[int]Target{}
	for i := range n {
		targets[i] = targetNumber(i)
	}
	return targets
}

// inBubble runs f in fake time, and ends what it started.
func inBubble(t *testing.T, f func(ctx context.Context)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f(ctx)
		cancel()
		synctest.Wait()
	})
}

func TestTargetsAreProbedOncePerInterval(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := startPool(t, ctx, Schedule{Interval: 10 * time.Second, Jitter: 0.2, Workers: 4, Random: rand.New(rand.NewPCG(1, 2)).Float64})
		p.Set(numbered(50))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		var phases []time.Duration
		for _, target := range numbered(50) {
			starts := p.starts[target.Address]
			if len(starts) < 60 || len(starts) > 60*10/7+1 || starts[0] != 0 {
				t.Fatalf("%s: %d probes from %s on in 10 minutes", target.Address, len(starts), starts[0])
			}
			phases = append(phases, starts[1])
			for i := 2; i < len(starts); i++ {
				if pause := starts[i] - starts[i-1]; pause < 7500*time.Millisecond || pause > 10*time.Second {
					t.Fatalf("%s: %s between two probes", target.Address, pause)
				}
			}
		}
		if first, last := slices.Min(phases), slices.Max(phases); last-first < 5*time.Second {
			t.Errorf("the second probes of all targets are between %s and %s", first, last)
		}
	})
}

func TestProbesDueCloseTogetherStartTogether(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := startPool(t, ctx, Schedule{Interval: 5 * time.Second, Random: rand.New(rand.NewPCG(1, 2)).Float64})
		p.Set(numbered(1000))
		time.Sleep(time.Minute)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		wakeups := map[time.Duration]bool{}
		for _, starts := range p.starts {
			for _, at := range starts {
				wakeups[at] = true
			}
		}
		if most := int(time.Minute/(250*time.Millisecond)) + 1; len(wakeups) > most {
			t.Errorf("%d wake-ups a minute, more than %d", len(wakeups), most)
		}
	})
}

func TestHungTargetsDelayOthersWithinTheBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const timeout = time.Second
		targets := rapid.IntRange(1, 60).Draw(rt, "targets")
		hung := rapid.IntRange(0, targets).Draw(rt, "hung")
		workers := rapid.IntRange(1, 20).Draw(rt, "workers")
		seed := rapid.Uint64().Draw(rt, "seed")
		inBubble(t, func(ctx context.Context) {
			p := startPool(rt, ctx, Schedule{Interval: 5 * time.Second, Workers: workers, Random: rand.New(rand.NewPCG(seed, 0)).Float64})
			for i := range hung {
				p.takes[targetNumber(i).Address] = timeout
			}
			p.Set(numbered(targets))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			if bound := time.Duration(hung/workers) * timeout; p.waited > bound {
				rt.Errorf("a probe waited %s, and the bound is %s", p.waited, bound)
			}
			if p.highest > workers {
				rt.Errorf("%d probes at once with %d workers", p.highest, workers)
			}
			if longest := 5*time.Second + time.Duration(hung/workers)*timeout; len(p.starts) != targets || shortOf(p.starts, 2*time.Minute, longest) {
				rt.Errorf("targets starve: %v", p.starts)
			}
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
	inBubble(t, func(ctx context.Context) {
		p := startPool(t, ctx, Schedule{Interval: time.Hour, Random: func() float64 { return 0.5 }})
		targets := numbered(3)
		p.Set(targets)
		synctest.Wait()
		changed := targetNumber(9)
		targets[1] = changed
		delete(targets, 2)
		targets[3] = targetNumber(3)
		p.Set(targets)
		synctest.Wait()
		p.mu.Lock()
		if slices.Sort(p.reports); !slices.Equal(p.reports, []int{0, 1, 1, 2, 3}) {
			t.Errorf("reported: %v", p.reports)
		}
		p.reports = nil
		p.mu.Unlock()
		time.Sleep(time.Hour)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if slices.Sort(p.reports); !slices.Equal(p.reports, []int{0, 1, 3}) {
			t.Errorf("reported an hour later: %v", p.reports)
		}
		if removed := p.starts[targetNumber(2).Address]; len(removed) != 1 {
			t.Errorf("the removed target is probed at %v", removed)
		}
	})
}

func TestResultsOfRemovedTargetsAreDropped(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := startPool(t, ctx, Schedule{Interval: 5 * time.Second})
		p.takes[targetNumber(0).Address] = time.Second
		p.Set(map[int]Target{0: targetNumber(0)})
		synctest.Wait()
		p.Set(map[int]Target{0: targetNumber(1)})
		time.Sleep(time.Minute)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if old, current := len(p.starts[targetNumber(0).Address]), len(p.starts[targetNumber(1).Address]); old != 1 || len(p.reports) != current || current < 10 {
			t.Errorf("%d probes of the old target, %d of the new one, %d reports", old, current, len(p.reports))
		}
	})
}

func TestRunEndsWithoutReportsOfCanceledProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := startPool(t, ctx, Schedule{})
		p.takes[targetNumber(0).Address] = time.Hour
		p.Set(numbered(1))
		synctest.Wait()
		cancel()
		synctest.Wait() // the test fails if goroutines are left
		if len(p.starts) != 1 || len(p.reports) != 0 {
			t.Errorf("%d probes, %d reports", len(p.starts), len(p.reports))
		}
	})
}

func TestLongProbesAreNotMadeUpFor(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := startPool(t, ctx, Schedule{Interval: time.Second, Random: func() float64 { return 0 }})
		p.takes[targetNumber(0).Address] = 10 * time.Second
		p.Set(numbered(1))
		synctest.Wait()
		time.Sleep(35 * time.Second)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if got := p.starts[targetNumber(0).Address]; !slices.Equal(got, []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}) {
			t.Errorf("probed at %v", got)
		}
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
			p.Set(map[int]Target{2: targetNumber(2)})
		}, Schedule{Interval: time.Hour})
		p.Set(map[int]Target{1: targetNumber(1)})
		go p.Run(ctx)
		if first, second := <-reports, <-reports; first != 1 || second != 2 {
			t.Errorf("reports of %d and %d", first, second)
		}
	})
}

func TestLongBatchLeavesHalfOfTheInterval(t *testing.T) {
	inBubble(t, func(ctx context.Context) {
		p := startPool(t, ctx, Schedule{Interval: 2 * time.Second, Batch: time.Hour, Random: func() float64 { return 1 }})
		p.Set(numbered(1))
		time.Sleep(500 * time.Millisecond)
		p.Set(numbered(2)) // the first target is due 1.5 s later
		time.Sleep(time.Minute)
		synctest.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		for address, starts := range p.starts {
			for i := 1; i < len(starts); i++ {
				if pause := starts[i] - starts[i-1]; pause < 900*time.Millisecond {
					t.Errorf("%s: %s between two probes", address, pause)
				}
			}
		}
	})
}
