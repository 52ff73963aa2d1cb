package rpc

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/willscott/go-nfs"
)

// TestMain makes the property tests the same each time. As a child of a benchmark it is an NFS server.
func TestMain(m *testing.M) {
	nfs.Log.SetLevel(nfs.PanicLevel)
	if os.Getenv(serveVariable) != "" {
		serveForBenchmark()
		return
	}
	for name, value := range map[string]string{"rapid.checks": "300", "rapid.seed": "2026"} {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}
