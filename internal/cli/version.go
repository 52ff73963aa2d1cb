package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// Version is set by the linker: -X github.com/fairlead-io/fairlead/internal/cli.Version=v1.2.3.
var Version = "dev"

// VersionCommand prints the version.
func VersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "fairlead %s %s %s/%s\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
