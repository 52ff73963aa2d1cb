// Dev runs Fairlead on an embedded real control plane: demo is a short tour,
// up leaves a cluster running in the background, down ends it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const usage = `usage: dev COMMAND

  demo    start a cluster, install Fairlead, show its main job, end it
  nfs     the second act of the demo: NFS servers, ten nodes; root and Linux
  up      start a cluster with Fairlead in the background; KUBECONFIG=.dev/kubeconfig
  up real the same with Longhorn's own manager, or of a version: up v1.8.1; root and Linux
  up nodes-real  a whole Longhorn on real nodes; root, Linux and Debian's packages
  down    end it
`

func main() {
	ctrl.SetLogger(logr.Discard()) // the clients of the sandbox have nothing to say
	if len(os.Args) == 2 && os.Args[1] == "nfs" {
		os.Exit(demoNFS())
	}
	os.Exit(withSignals(func(ctx context.Context) error { return run(ctx, os.Args[1:]) }))
}

// withSignals runs a command that ends when it is interrupted, and returns the exit status.
func withSignals(command func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx)
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "\ninterrupted; everything that was started has ended")
		return 130
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 || len(args) > 2 {
		return fmt.Errorf("say what to do\n%s", usage)
	}
	longhorn := strings.Join(args[1:], "")
	switch args[0] {
	case "demo":
		if os.Getenv("KUBECONFIG") != "" {
			return demoOnOwnCluster(ctx)
		}
		return demo(ctx)
	case "up":
		return up(ctx, longhorn)
	case "can-run":
		return canRun(longhorn)
	case "serve": // what up leaves running
		if version, is := realVersion(longhorn); is {
			serveReal(ctx, version)
		}
		if longhorn == realNodes {
			serveNodes(ctx)
		}
		return serve(ctx)
	case "down":
		return down()
	}
	return fmt.Errorf("there is no command %q\n%s", args[0], usage)
}
