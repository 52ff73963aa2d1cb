package main

import (
	"fmt"
	"testing"
)

// Targets, as ratios.
const (
	lessCPU         = 30
	mostAllocations = 64
	mostLarge       = 5
	mostNoMatch     = 1
)

// inProcessRows measures the handlers without a network.
func inProcessRows(rounds int) ([]row, error) {
	cases := []reviewCase{match, bigMatch, noNetwork, already}
	var samplers []sampler
	var allocations row
	for i, c := range cases {
		ours, theirs, err := c.calls()
		if err != nil {
			return nil, err
		}
		if i == 0 {
			allocations = allocationsRow(c.name+", allocations", ours, theirs)
		}
		samplers = append(samplers, inProcess(ours), inProcess(theirs))
	}
	costs, err := interleave(rounds, samplers...)
	if err != nil {
		return nil, err
	}
	base := costs[0]
	return []row{
		atLeast(match.name+", CPU", base, costs[1], lessCPU),
		allocations,
		atMost(bigMatch.name+", CPU", costs[2], costs[3], base, mostLarge, "the 12 KB Pod"),
		atMost(noNetwork.name+", CPU", costs[4], costs[5], base, mostNoMatch, "a match"),
		atMost(already.name+", CPU", costs[6], costs[7], base, mostNoMatch, "a match"),
	}, nil
}

func allocationsRow(what string, ours, theirs *call) row {
	const runs = 100
	count := func(c *call) float64 { return testing.AllocsPerRun(runs, func() { _ = c.do() }) }
	a, b := count(ours), count(theirs)
	return row{
		what: what, ours: fmt.Sprint(a), theirs: fmt.Sprint(b), ratio: fmt.Sprintf("%.1f", b/a),
		target: fmt.Sprintf("at most %d", mostAllocations), met: met(a <= mostAllocations),
	}
}
