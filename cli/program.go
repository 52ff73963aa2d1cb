// Package cli is the shared code of the subcommands for people: flags, the connection to a cluster,
// tables and JSON, exit codes. Each subcommand is a package of its own.
package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// pluginName is the name by which kubectl finds the program as a plugin.
const pluginName = "kubectl-fairlead"

// IsPlugin reports whether a program of this name is called by kubectl.
func IsPlugin(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == pluginName
}

// command is the program's name at the start of a line of examples, or quoted in a text.
var command = regexp.MustCompile(`(?m)(^  |"|` + "`" + `)fairlead `)

// NameAsPlugin makes help, examples and completion say `kubectl fairlead`.
func NameAsPlugin(cmd *cobra.Command) {
	if !cmd.HasParent() {
		if cmd.Annotations == nil {
			cmd.Annotations = map[string]string{}
		}
		cmd.Annotations[cobra.CommandDisplayNameAnnotation] = "kubectl fairlead"
	}
	cmd.Example, cmd.Long = command.ReplaceAllString(cmd.Example, "${1}kubectl fairlead "), command.ReplaceAllString(cmd.Long, "${1}kubectl fairlead ")
	for _, c := range cmd.Commands() {
		NameAsPlugin(c)
	}
}

// Program is what people type to run the program: fairlead or kubectl fairlead.
func Program(cmd *cobra.Command) string { return cmd.Root().DisplayName() }

// Version is set by the linker: -X github.com/fairlead-io/fairlead/cli.Version=v1.2.3.
var Version = "dev"

// ExitCode ends the process with a code and prints nothing more.
type ExitCode int

// Error is empty.
func (ExitCode) Error() string { return "" }

// ExitWaits: a requested change would not be applied now.
const ExitWaits ExitCode = 2

// ExitWrong: something is wrong, and waiting does not repair it.
const ExitWrong ExitCode = 3
