package workloads

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the property test long enough: most faults of the controller
// show within 50 runs, the rarest that were tried (a container that waits, and
// nobody looks again) took up to 750. The same runs each time; make soak makes new ones.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "120", "rapid.steps": "60", "rapid.seed": "2026"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
