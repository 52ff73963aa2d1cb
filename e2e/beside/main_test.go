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
		fmt.Println("the tests beside Longhorn's own manager cannot run here:", why)
		os.Exit(0)
	}
	os.Exit(machine.Run(Machine(), m.Run))
}
