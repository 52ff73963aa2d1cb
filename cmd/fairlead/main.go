// Fairlead leads shared-volume traffic onto a storage network of its own.
package main

import (
	"errors"
	"fmt"
	"os"
	_ "time/tzdata" // maintenance windows name time zones that the image does not have

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	root := &cobra.Command{
		Use:           "fairlead",
		Short:         "Lead shared-volume traffic on Kubernetes onto a storage network of its own",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(webhookCommand(), controllerCommand(), csiControllerCommand(), planCommand(), settingsCommand(), fencesCommand(), nfsCommand(), cephClientsCommand(), csiNodeCommand(), versionCommand())
	err := root.ExecuteContext(ctrl.SetupSignalHandler())
	var code exitCode
	if errors.As(err, &code) {
		os.Exit(int(code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fairlead:", err)
		os.Exit(1)
	}
}
