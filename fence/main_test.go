package fence

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the property test long enough; docs of what it catches are in
// property_test.go. It makes the same runs each time, so that whoever changes
// something else does not meet a rare one; make soak looks for those.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "400", "rapid.steps": "100", "rapid.seed": "2026"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
