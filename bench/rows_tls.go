package main

import (
	"errors"
	"fmt"
)

// many is the number of concurrent calls under load, as when a DaemonSet creates
// pods on several nodes.
const many = 8

// Calls per sample: enough for the clock's resolution, and about the same time for both sides.
const (
	ourCalls   = 800
	theirCalls = 10 * many
)

// overTLSRows measures servers of the 12 KB case in separate processes: under load,
// for the target, and one call at a time. With single calls, most of the cost is
// waking an idle server, so the empty handler is shown for comparison.
func overTLSRows(rounds int) (_ []row, err error) {
	review, err := match.review()
	if err != nil {
		return nil, err
	}
	var samplers []sampler
	for _, side := range []struct {
		name  string
		calls int
	}{{fairlead, ourCalls}, {controllerRuntime, theirCalls}, {empty, ourCalls}} {
		server, err := startChild(side.name, review)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, server.stop()) }()
		samplers = append(samplers, server.overTLS(side.calls, many), server.overTLS(side.calls, 1))
	}
	costs, err := interleave(rounds, samplers[0], samplers[2], samplers[4], samplers[1], samplers[3], samplers[5])
	if err != nil {
		return nil, err
	}
	what := match.name + ", server CPU over TLS 1.3, "
	loaded := atLeast(fmt.Sprintf("%s%d at a time", what, many), costs[0], costs[1], lessOverTLS)
	single := atLeast(what+"one at a time", costs[3], costs[4], lessOverTLS)
	single.target, single.met = "-", "-"
	return []row{
		loaded, toLookAt("  of it TLS and HTTP (an empty handler)", costs[2]),
		single, toLookAt("  of it TLS and HTTP (an empty handler)", costs[5]),
	}, nil
}
