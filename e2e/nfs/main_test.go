package nfs

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// TestMain runs the tests in a machine of their own.
func TestMain(m *testing.M) {
	if why := machine.Unavailable(); why != "" {
		fmt.Fprintln(os.Stderr, "NFS services are not tested end to end here:", why)
		os.Exit(0)
	}
	os.Exit(machine.Run(Machine(), func() int {
		status := m.Run()
		if one.cluster != nil {
			if err := one.cluster.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, "stopping:", err)
			}
			if status == 0 && os.Getenv("NFS_DIR") == "" {
				_ = os.RemoveAll(one.cluster.Dir)
			}
		}
		return status
	}))
}

// one cluster serves all tests: it takes longer to start than any of them.
var one struct {
	sync.Once
	cluster *Cluster
	err     error
}

func shared(t testing.TB) *Cluster {
	t.Helper()
	one.Do(func() { one.cluster, one.err = startShared() })
	if one.err != nil {
		t.Fatal(one.err)
	}
	return one.cluster
}

func startShared() (*Cluster, error) {
	dir := os.Getenv("NFS_DIR")
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "fairlead-nfs-"); err != nil {
			return nil, err
		}
	}
	return Start(context.Background(), Options{Dir: dir, Nodes: 100, Out: os.Stderr})
}
