package beside

import (
	"fmt"
	"os"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// TestMain runs the tests in a machine of their own.
func TestMain(m *testing.M) {
	if why := machine.Unavailable(); why != "" {
		fmt.Fprintln(os.Stderr, "the tests beside Longhorn's own manager cannot run here:", why)
		os.Exit(0)
	}
	os.Exit(machine.Run(Machine(), func() int {
		status := m.Run()
		if one.cluster != nil {
			if err := one.cluster.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stopping:", err)
			}
			if status == 0 && os.Getenv("BESIDE_DIR") == "" {
				_ = os.RemoveAll(one.cluster.Dir)
			}
		}
		return status
	}))
}
