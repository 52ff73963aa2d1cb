// Fairlead moves the traffic of shared volumes to a dedicated storage network.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // maintenance windows name time zones, and the image has no time zone files

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/check"
	"github.com/fairlead-io/fairlead/cli/fences"
	"github.com/fairlead-io/fairlead/cli/nfs"
	"github.com/fairlead-io/fairlead/cli/plan"
	"github.com/fairlead-io/fairlead/cli/review"
	"github.com/fairlead-io/fairlead/cli/settings"
	"github.com/fairlead-io/fairlead/cli/status"
	"github.com/fairlead-io/fairlead/cli/ui"
)

func main() {
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args, os.Stdout, os.Stderr))
}

// run returns the exit code. The first of args is the name that the program was called by.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := &cobra.Command{
		Use:           "fairlead",
		Short:         "Lead shared-volume traffic on Kubernetes onto a storage network of its own",
		Version:       cli.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(webhookCommand(), controllerCommand(), csiControllerCommand(), check.Command(), status.Command(), status.VolumesCommand(), plan.Command(), review.Command(), settings.Command(), fences.Command(), nfs.Command(), ui.Command(), cephClientsCommand(), csiNodeCommand(), cli.VersionCommand())
	if cli.IsPlugin(args[0]) {
		cli.NameAsPlugin(root)
	}
	root.SetArgs(args[1:])
	terminal := &cli.Terminal{Writer: out, Layout: cli.LayoutOf(out)}
	root.SetOut(terminal)
	root.SetErr(&cli.Terminal{Writer: errOut})
	err := cmp.Or(root.ExecuteContext(ctx), terminal.Err())
	var code cli.ExitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(root.ErrOrStderr(), "fairlead:", err)
	return 1
}
