package storage

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the property tests long enough: two servers with one address
// are rare, and so is what can be wrong with that.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	flag.Parse()
	os.Exit(m.Run())
}
