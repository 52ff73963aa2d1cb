//go:build linux

package nodes

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// Flags by which make asks before it builds anything.
var (
	packages    = flag.Bool("packages", false, "print Debian's packages that are missing")
	unavailable = flag.Bool("unavailable", false, "print why the tests cannot run here")
)

// TestMain runs the tests in a machine of their own.
func TestMain(m *testing.M) {
	flag.Parse()
	switch why := Unavailable(); {
	case *packages:
		fmt.Println(strings.Join(MissingPackages(), " "))
		os.Exit(0)
	case *unavailable:
		fmt.Println(why)
		os.Exit(0)
	case why != "":
		fmt.Fprintln(os.Stderr, "the tests on real nodes cannot run here:", why)
		os.Exit(1)
	}
	os.Exit(machine.Run(Machine(), m.Run))
}

// start starts a cluster for a test, and stops it at the end of the test.
func start(t *testing.T) (context.Context, *Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	dir := filepath.Join(os.Getenv("NODES_DIR"), t.Name())
	if os.Getenv("NODES_DIR") == "" { // in place of t.TempDir, which stays if the test is killed
		must(t, os.MkdirAll(folders, 0o755))
		var err error
		dir, err = os.MkdirTemp(folders, t.Name())
		must(t, err)
		t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	}
	c, err := Start(ctx, Options{Dir: dir, Nodes: 3, Image: os.Getenv("FAIRLEAD_IMAGE"), Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("NODES_HOLD") != "" {
			fmt.Fprintln(os.Stderr, "holding the cluster: KUBECONFIG="+c.State.Kubeconfig)
			<-ctx.Done()
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return ctx, c
}

// startLonghorn starts a cluster with Longhorn and a storage network.
func startLonghorn(t *testing.T) (context.Context, *Cluster) {
	t.Helper()
	ctx, c := start(t)
	must(t, c.InstallLonghorn(ctx))
	must(t, c.CreateNetworks(ctx))
	return ctx, c
}

// installFairlead installs Fairlead beside Longhorn as docs/install.md says.
func installFairlead(ctx context.Context, t *testing.T, c *Cluster, patches ...string) {
	t.Helper()
	must(t, c.InstallFairlead(ctx, Installation{Overlay: "cert-manager", Patches: patches}, "fairlead-webhook", "fairlead-controller"))
	must(t, c.WaitWorking(ctx))
}

// must ends the test.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Step says how long a step of a scenario takes, when it is done.
func (c *Cluster) Step(what string) (done func()) {
	began := time.Now()
	return func() { fmt.Fprintf(c.Out, "%s: %s\n", what, time.Since(began).Round(100*time.Millisecond)) }
}

// uncordonLater uncordons a node also where the test fails, for the tests after it.
func (c *Cluster) uncordonLater(t *testing.T, node string) {
	t.Cleanup(func() {
		if _, err := c.Kubectl(context.Background(), "", "uncordon", node); err != nil {
			t.Error(err)
		}
	})
}
