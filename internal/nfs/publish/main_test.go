package publish

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the property tests long enough, and the same each time.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "300", "rapid.steps": "80", "rapid.seed": "2026"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
