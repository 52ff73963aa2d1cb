package main

import (
	"io"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/validators"
)

// What `fairlead plan` may take of CPU time for sample.Large, and how many times
// of a tenth of it: linear growth is 10, sorting adds a little, and caches hold less of the large one.
const (
	mostPlanTime   = time.Second
	mostPlanGrowth = 15
)

// planOnce does all that `fairlead plan` does but read: judge, plan, and print both forms.
func planOnce(tb testing.TB, size sample.Cluster) func() {
	tb.Helper()
	changes, err := parseChanges([]string{"priority-class=system-node-critical", "guaranteed-instance-manager-cpu=25"}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	facts := validators.SettingFacts{Facts: size.Facts(), Applies: true, MissingPolicy: validators.Warn, PriorityClasses: []string{"system-node-critical"}}
	return func() {
		view, err := changes.planned(facts)
		if err != nil {
			tb.Fatal(err)
		}
		if len(view.Works) < (size.Pods-size.Nodes)/2 || len(view.Blockers) < size.Volumes/2 {
			tb.Fatalf("the plan has not the work that is to be measured: %d works, %d blockers", len(view.Works), len(view.Blockers))
		}
		for _, output := range []string{outputTable, outputJSON} {
			_ = show(io.Discard, view, output) // its error is that something waits
		}
	}
}

// cpuTime of one call. Other processes of the machine don't count in it.
func cpuTime(tb testing.TB, call func()) time.Duration {
	tb.Helper()
	runtime.GC()
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			tb.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := used()
	call()
	return used() - before
}

// BenchmarkPlan measures the command but for the network and decoding, one size
// and then the other, so that whatever else the machine does meets both alike.
func BenchmarkPlan(b *testing.B) {
	large, tenth := planOnce(b, sample.Large), planOnce(b, sample.Tenth)
	var forLarge, forTenth []time.Duration
	for b.Loop() {
		forLarge = append(forLarge, cpuTime(b, large))
		forTenth = append(forTenth, cpuTime(b, func() {
			for range 10 { // long enough to be measured
				tenth()
			}
		})/10)
	}
	median := func(of []time.Duration) time.Duration { slices.Sort(of); return of[len(of)/2] }
	took, growth := median(forLarge), float64(median(forLarge))/float64(median(forTenth))
	b.ReportMetric(float64(took.Microseconds())/1000, "cpu-ms/plan")
	b.ReportMetric(growth, "times-a-tenth")
	b.Logf("fairlead plan, %s: %s of CPU, target %s; %.1f times %s, target at most %d; met: %v",
		sample.Large, took.Round(time.Millisecond), mostPlanTime, growth, sample.Tenth, mostPlanGrowth, took <= mostPlanTime && growth <= mostPlanGrowth)
}

// Regression: with RWX volumes a plan went through all of them for every Service,
// and through all blockers for every piece of work. Cost that grows with the square
// would be 100 times here. The best of several, since the garbage collector and what
// shares the machine's caches only ever add.
func TestPlansGrowLinearly(t *testing.T) {
	large, tenth := planOnce(t, sample.Large), planOnce(t, sample.Tenth)
	least := func(call func()) time.Duration {
		best := time.Hour
		for range 3 {
			best = min(best, cpuTime(t, call))
		}
		return best
	}
	forTenth := least(func() {
		for range 10 {
			tenth()
		}
	}) / 10
	if forLarge := least(large); forLarge > 2*mostPlanGrowth*forTenth {
		t.Errorf("%s take %s, %s take %s", sample.Large, forLarge, sample.Tenth, forTenth)
	}
}
