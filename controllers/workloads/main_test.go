package workloads

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the property test as long as most faults of the controller need:
// they show within 50 runs. The rarest that were tried (a container that waits, and
// without a further look) took up to 750, which is two minutes with the race detector: those
// are left to make soak, which makes new runs. Here they are the same each time.
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
