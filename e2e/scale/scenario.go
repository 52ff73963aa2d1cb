package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// size of a cluster. The proportions are those of the promise: 500 nodes, 1,000
// volumes, 5,000 pods.
type size struct{ nodes, volumes, pods int }

// podsPerVolume share one volume.
const podsPerVolume = 5

func sizeOf(nodes int) size {
	return size{nodes: nodes, volumes: 2 * nodes, pods: 2 * podsPerVolume * nodes}
}

func (s size) String() string {
	return fmt.Sprintf("%d nodes, %d volumes, %d pods", s.nodes, s.volumes, s.pods)
}

// result of one run.
type result struct {
	size    size
	phases  []phase
	verdict verdict
	// atRest is the cost of the controller before the restarts, cost the cost since.
	atRest, cost cost
	// review is how long a change of a setting takes that waits for every volume.
	review time.Duration
}

// phase of a run, and how long it took.
type phase struct {
	what string
	took time.Duration
}

// scenario is one run under way.
type scenario struct {
	*sandbox.Sandbox
	size size
	// args are added to those of the controller.
	args   []string
	report *reporter
	follow *follower
	phases []phase
	// atRest is the cost of the controller before the restarts.
	atRest cost
	review time.Duration
}

// phase runs one part of the scenario and notes how long it takes.
func (s *scenario) phase(what string, do func() error) error {
	s.report.say("%s", what)
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.phases = append(s.phases, phase{what, time.Since(began)})
	return nil
}

func runScenario(ctx context.Context, binary string, size size, args ...string) (r result, err error) {
	dir, err := os.MkdirTemp("", "fairlead-scale-")
	if err != nil {
		return result{}, fmt.Errorf("making a folder: %w", err)
	}
	defer func() {
		if err == nil && r.verdict.err() == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		} else {
			fmt.Fprintf(os.Stderr, "files of the run remain in %s\n", dir)
		}
	}()
	s := &scenario{args: args, size: size, report: newReporter(os.Stdout, fmt.Sprintf("%d nodes", size.nodes))}
	err = s.phase("starting the control plane and its nodes", func() error {
		s.Sandbox, err = sandbox.Start(ctx, sandbox.Options{Dir: dir, Nodes: size.nodes, Fairlead: binary, Audit: true, Out: os.Stdout, ControllerArgs: s.args})
		return err
	})
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	return s.play(ctx)
}

// play runs the scenario in a running control plane.
func (s *scenario) play(ctx context.Context) (result, error) {
	if err := s.unlimit(); err != nil {
		return result{}, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var err error
	if s.follow, err = newFollower(following, s.Config); err != nil {
		return result{}, err
	}
	var judged verdict
	for _, p := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"seeding Longhorn", s.seed},
		{"installing Fairlead", s.install},
		{"bringing the CSI plugin to the network", s.applyNetwork},
		{"creating and attaching volumes", s.createVolumes},
		{"starting workloads", s.startWorkloads},
		{"reviewing a setting", s.reviewSetting},
		{"restarting the CSI plugin on all nodes", s.restartClients},
		{"waiting until all is quiet", func(ctx context.Context) error { judged, err = s.waitQuiet(ctx); return err }},
	} {
		if err := s.phase(p.what, func() error { return p.do(ctx) }); err != nil {
			return result{}, err
		}
	}
	total, err := s.cost()
	if err != nil {
		return result{}, err
	}
	s.report.say("%s", judged)
	return result{size: s.size, phases: s.phases, verdict: judged, atRest: s.atRest, cost: total.since(s.atRest), review: s.review}, nil
}

// writeRestarts prints the measurements of all sizes.
func writeRestarts(out io.Writer, results []result) error {
	t := &rowsOf[result]{results: results}
	var sizes []int
	for _, r := range results {
		sizes = append(sizes, r.size.nodes)
	}
	t.add("volumes", "%.0f", func(r result) float64 { return float64(r.size.volumes) })
	t.add("workload pods", "%.0f", func(r result) float64 { return float64(r.size.pods) })
	for i := range results[0].phases {
		t.add(results[0].phases[i].what, "%.1f s", func(r result) float64 { return r.phases[i].took.Seconds() })
	}
	t.addTarget("a setting reviewed, by the API server", "%.2f s", 1, func(r result) float64 { return r.review.Seconds() })
	t.add("evictions", "%.0f", func(r result) float64 { return float64(r.verdict.evictions) })
	t.add("evictions per second, from the first to the last", "%.1f", func(r result) float64 { return float64(r.verdict.evictions) / float64(max(1, r.verdict.seconds)) })
	t.add("evictions per second, in the busiest ten seconds", "%.1f", func(r result) float64 { return float64(r.verdict.busiest) / 10 })
	t.add("controller: CPU time before the restarts", "%.1f s", func(r result) float64 { return r.atRest.cpu.Seconds() })
	t.add("controller: CPU time since", "%.1f s", func(r result) float64 { return r.cost.cpu.Seconds() })
	t.add("controller: memory before the restarts", "%.1f MiB", func(r result) float64 { return r.atRest.memory })
	t.add("controller: most memory", "%.1f MiB", func(r result) float64 { return r.cost.peak })
	t.add("controller: API requests since", "%.0f", func(r result) float64 { return float64(r.cost.total()) })
	t.add("controller: API requests per eviction", "%.2f", func(r result) float64 { return float64(r.cost.total()) / float64(max(1, r.verdict.evictions)) })
	all := map[string]int{}
	for _, r := range results {
		maps.Copy(all, r.cost.requests)
	}
	for _, kind := range slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(all[b]-all[a], strings.Compare(a, b)) }) {
		t.add("  "+kind, "%.0f", func(r result) float64 { return float64(r.cost.requests[kind]) })
	}
	if err := writeTable(out, sizes, t.rows); err != nil {
		return err
	}
	for _, r := range results {
		fmt.Fprintf(out, "%s: %s\n", r.size, r.verdict)
	}
	return nil
}
