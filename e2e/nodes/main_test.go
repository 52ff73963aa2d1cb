//go:build linux

package nodes

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// TestMain runs the tests in a machine of their own.
func TestMain(m *testing.M) {
	if why := machine.Unavailable(); why != "" {
		fmt.Fprintln(os.Stderr, "the tests on real nodes cannot run here:", why)
		os.Exit(0)
	}
	os.Exit(machine.Run(Machine(), m.Run))
}

func TestNodes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	dir := os.Getenv("NODES_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	began := time.Now()
	c, err := Start(ctx, Options{Dir: dir, Nodes: 3, Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("started in", time.Since(began))
	c.Image = os.Getenv("IMG")
	if err := c.InstallLonghorn(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("longhorn in", time.Since(began))
	if err := c.InstallFairlead(ctx, "cert-manager"); err != nil {
		fmt.Println(err)
	}
	fmt.Println("fairlead in", time.Since(began))
	if os.Getenv("NODES_HOLD") != "" {
		time.Sleep(time.Hour)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}
