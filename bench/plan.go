package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

// mostGrowth is the maximum growth of a plan's cost for ten times the cluster. Linear growth
// is 10; sorting adds a little, and CPU caches hold less of the large cluster.
const mostGrowth = 15

// planRow compares one plan for a large cluster with one for a tenth of it. BenchmarkPlan of cli/plan
// measures the whole of `fairlead plan`.
func planRow(rounds int) (row, error) {
	large, err := planning(sample.Large)
	if err != nil {
		return row{}, err
	}
	small, err := planning(sample.Tenth)
	if err != nil {
		return row{}, err
	}
	costs, err := interleave(rounds, large, small)
	if err != nil {
		return row{}, err
	}
	growth := costs[0].over(costs[1])
	return row{
		what: "plan, CPU: " + sample.Large.String() + "; a tenth of it: " + micro(costs[1]), ours: micro(costs[0]), theirs: "-",
		ratio: growth.String(), target: fmt.Sprintf("at most %d × a tenth", mostGrowth), met: met(growth.median <= mostGrowth),
	}, nil
}

var errIdle = errors.New("the plan has not the work that is to be measured")

// planning makes plans for a cluster of the size, checked to be real work.
func planning(size sample.Cluster) (sampler, error) {
	facts := size.Facts()
	p := planner.Make(facts)
	if len(p.Now) == 0 || len(p.Later) == 0 || len(p.Now)+len(p.Later) < len(facts.Components) {
		return nil, fmt.Errorf("%w: %d now, %d later of %d components", errIdle, len(p.Now), len(p.Later), len(facts.Components))
	}
	return func() (time.Duration, error) {
		runtime.GC()
		started, err := cpuTime()
		if err != nil {
			return 0, err
		}
		for plans := 1; ; plans++ {
			planner.Make(facts)
			now, err := cpuTime()
			if err != nil {
				return 0, err
			}
			if spent := now - started; spent >= sampleTime {
				return spent / time.Duration(plans), nil
			}
		}
	}, nil
}
