// Package fixedruns makes property tests the same each time, so that whoever changes something else does not meet a rare failure.
package fixedruns

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Main is for TestMain: it makes so many runs of so many steps, from one seed. Flags of the command line come first.
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
