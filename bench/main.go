// Command bench sets the cost of Fairlead's admission beside that of
// controller-runtime's own, on the same reviews and in one run. It prints
// ratios: they hold from machine to machine, times do not. Plans for the settings
// are set beside plans for a tenth of the cluster. It judges nothing: its status is
// 0 unless something is broken.
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
