// Package fixedruns makes property tests deterministic, so that unrelated changes do not hit rare failures.
package fixedruns

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Main is for TestMain: it sets the numbers of runs and steps, and the seed. Command-line flags take precedence.
func Main(m *testing.M, checks, steps int) {
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(checks), "rapid.steps": strconv.Itoa(steps), "rapid.seed": "2026"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
