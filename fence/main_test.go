package fence

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the property test long enough; docs of what it catches are in
// property_test.go. More of it: -rapid.checks=20000.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "400", "rapid.steps": "100"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
