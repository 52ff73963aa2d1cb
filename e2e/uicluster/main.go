// Uicluster runs `fairlead ui` on a stand-in for an API server, for tests of the page in a real browser.
// Lines on standard input change the cluster: mend, break, away, back.
package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/cli/ui"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, stop); err != nil {
		fmt.Fprintln(os.Stderr, "uicluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stop func()) error {
	api, objects, err := clitest.API(nil, everything(time.Now())...)
	if err != nil {
		return err
	}
	c := &standIn{api: api, objects: objects}
	server := httptest.NewServer(c)
	defer server.Close()
	folder, err := os.MkdirTemp("", "uicluster")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, clitest.KubeconfigOf("lab", server.URL), 0o600); err != nil {
		return err
	}
	go func() {
		defer stop() // standard input ends with the test
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if err := c.obey(ctx, lines.Text()); err != nil {
				fmt.Fprintln(os.Stderr, "uicluster:", err)
				return
			}
		}
	}()
	program := &cobra.Command{Use: "fairlead"}
	program.AddCommand(ui.Command())
	program.SetArgs([]string{"ui", "--kubeconfig", kubeconfig})
	program.SetOut(os.Stdout)
	return program.ExecuteContext(ctx)
}

// standIn is an API server that can go away.
type standIn struct {
	api     http.Handler
	objects client.Client
	away    atomic.Bool
}

func (c *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.away.Load() {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	c.api.ServeHTTP(w, r)
}

func (c *standIn) obey(ctx context.Context, order string) error {
	switch order {
	case "away":
		c.away.Store(true)
	case "back":
		c.away.Store(false)
	case "mend":
		return c.publish(ctx, "10.1.0.7")
	case "break":
		return c.publish(ctx, "10.1.0.9")
	default:
		return fmt.Errorf("unknown order %q", order) //nolint:err113 // for the author of the test
	}
	return nil
}

// publish sets the address of volume pvc-a. Multus reports 10.1.0.7.
func (c *standIn) publish(ctx context.Context, address string) error {
	var slice discoveryv1.EndpointSlice
	if err := c.objects.Get(ctx, client.ObjectKey{Namespace: "longhorn-system", Name: "pvc-a-ipv4"}, &slice); err != nil {
		return err
	}
	slice.Labels[discoveryv1.LabelManagedBy] = rwx.SliceManager
	slice.Endpoints[0].Addresses = []string{address}
	return c.objects.Update(ctx, &slice)
}
