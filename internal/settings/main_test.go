package settings

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the property tests long enough: the rarest of the gates' faults
// (a template's revision forgotten) took 3,300 runs of 100 steps to show. The runs
// are the same each time, so that whoever changes something else does not meet a
// rare one; make soak looks for those.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "4000", "rapid.steps": "100", "rapid.seed": "2026"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
