// Command bench compares the cost of Fairlead's admission with controller-runtime's,
// on the same reviews and in one run. It prints ratios, which are comparable between
// machines, unlike times. It compares plans for the settings with plans for a tenth of
// the cluster. The exit status does not depend on targets: it is 0 unless a run fails.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
)

func main() {
	rounds := flag.Int("rounds", 11, "how many times each case is measured")
	flag.Parse()
	if err := run(max(1, *rounds)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds int) error {
	if side := os.Getenv(serveVariable); side != "" {
		return serve(side)
	}
	rows, err := inProcessRows(rounds)
	if err != nil {
		return err
	}
	overTLS, err := overTLSRows(rounds)
	if err != nil {
		return err
	}
	plans, err := planRows(rounds)
	if err != nil {
		return err
	}
	return write(os.Stdout, slices.Concat(rows, overTLS, plans))
}
