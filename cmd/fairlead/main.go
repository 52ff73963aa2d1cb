// Fairlead leads shared-volume traffic onto a storage network of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // maintenance windows name time zones that the image does not have

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	os.Exit(run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := &cobra.Command{
		Use:           "fairlead",
		Short:         "Lead shared-volume traffic on Kubernetes onto a storage network of its own",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(webhookCommand(), controllerCommand(), csiControllerCommand(), planCommand(), settingsCommand(), fencesCommand(), nfsCommand(), cephClientsCommand(), csiNodeCommand(), versionCommand())
	root.SetArgs(args)
	root.SetOut(terminal{out})
	root.SetErr(terminal{errOut})
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintln(root.ErrOrStderr(), "fairlead:", err)
	return 1
}
