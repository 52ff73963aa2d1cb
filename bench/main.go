// Command bench compares the cost of Fairlead's admission with controller-runtime's,
// on the same reviews and in one run. It prints ratios, which are comparable between
// machines, unlike times. Both sides are called without a network: they are served alike.
// It compares a plan for the settings with one for a tenth of the cluster. The exit
// status does not depend on targets: it is 0 unless a run fails.
package main

import (
	"flag"
	"fmt"
	"os"
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
	rows, err := inProcessRows(rounds)
	if err != nil {
		return err
	}
	plan, err := planRow(rounds)
	if err != nil {
		return err
	}
	return write(os.Stdout, append(rows, plan))
}
