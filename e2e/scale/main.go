// Scale runs one scenario at two sizes, one ten times the other, on the real
// control plane with simulated nodes: every CSI plugin pod is restarted, a few
// at a time, and each workload whose mount died with one is restarted, once.
// It reports what that costs the controller, and how the cost grows. With -fencing
// it measures fencing instead, in clusters of up to 5,000 nodes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	sizes := flag.String("nodes", "", "how many `nodes` there are, in each run; default 50,500, and with -fencing 5,000 too")
	fencing := flag.Bool("fencing", false, "measure what fencing costs, with simulated nodes of 20 volumes each, on a stand-in of the API server")
	lost := flag.Int("lost", 100, "with -fencing, how many `nodes` are lost at once, a fifth of all at most")
	added := flag.String("controller", "", "more `flags` of the controller, such as --pprof-listen=127.0.0.1:6060")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *sizes, *fencing, *lost, strings.Fields(*added))
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "\ninterrupted; everything that was started has ended")
		os.Exit(130)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, sizes string, fencing bool, lost int, args []string) error {
	binary := os.Getenv("FAIRLEAD_BINARY")
	if binary == "" {
		return errors.New("FAIRLEAD_BINARY does not say which binary to run; use make -C e2e bench-scale")
	}
	if sizes == "" {
		sizes = "50,500"
		if fencing {
			sizes += ",5000"
		}
	}
	var all []int
	for text := range strings.SplitSeq(sizes, ",") {
		nodes, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || nodes < 1 {
			return fmt.Errorf("-nodes %q is no list of numbers", sizes)
		}
		all = append(all, nodes)
	}
	if fencing {
		return runFencing(ctx, os.Stdout, binary, all, lost, args)
	}
	var results []result
	var problems []error
	for _, nodes := range all {
		s := sizeOf(nodes)
		r, err := runScenario(ctx, binary, s, args...)
		if err != nil {
			return fmt.Errorf("at %s: %w", s, err)
		}
		results = append(results, r)
		if err := r.verdict.err(); err != nil {
			problems = append(problems, fmt.Errorf("at %s: %w", s, err))
		}
	}
	return errors.Join(append(problems, writeRestarts(os.Stdout, results))...)
}
