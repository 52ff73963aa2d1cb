package rpc

import (
	"os"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// TestMain makes the test binary an NFS server where a benchmark starts it as its child.
func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		serveForBenchmark()
		return
	}
	fixedruns.Main(m, 300, 30)
}
