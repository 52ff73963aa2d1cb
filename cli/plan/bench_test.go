package plan

import (
	"io"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/validators"
)

// Limits of the CPU time of `fairlead plan` for sample.Large, and of its ratio to a tenth of sample.Large.
// Linear growth is 10; sorting and cache misses add a little.
const (
	mostPlanTime   = time.Second
	mostPlanGrowth = 15
)

// planOnce does all work of `fairlead plan` except reads: judge, plan, and print both forms.
func planOnce(tb testing.TB, size sample.Cluster) func() {
	tb.Helper()
	changes, err := parseChanges([]string{"priority-class=system-node-critical", "guaranteed-instance-manager-cpu=25"}, nil)
	must.Do(tb, err)
	facts := validators.SettingFacts{Facts: size.Facts(), Applies: true, MissingPolicy: settings.Warn}
	facts.Classes = map[string]bool{"system-node-critical": true}
	return func() {
		view, err := changes.planned(facts)
		must.Do(tb, err)
		if len(view.Works) < (size.Pods-size.Nodes)/2 || len(view.Blockers) < size.Volumes/2 {
			tb.Fatalf("too little work to measure: %d works, %d blockers", len(view.Works), len(view.Blockers))
		}
		for _, output := range []string{cli.OutputTable, cli.OutputJSON} {
			_ = show(io.Discard, view, output) // the error says that some work waits
		}
	}
}

// cpuTime of one call, without other processes of the machine.
func cpuTime(tb testing.TB, call func()) time.Duration {
	tb.Helper()
	runtime.GC()
	used := func() time.Duration {
		var usage syscall.Rusage
		must.Do(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	before := used()
	call()
	return used() - before
}

// BenchmarkPlan measures the command without network and decoding. The sizes alternate, so that load of the machine affects both.
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

// Regression: a plan looked at all RWX volumes for every Service, and at all blockers for every work.
// Quadratic cost would be 100 times here. The best of several runs has the least noise.
func TestPlansGrowLinearly(t *testing.T) {
	must.HaveTime(t)
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
