package settings

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settingsapi"
)

func Command() *cobra.Command {
	o := &cli.ClientOptions{}
	cmd := &cobra.Command{
		Use:   "settings [name]",
		Short: "Show the settings of the danger zone: what is in effect, what is applied, what waits",
		Long: `Show the settings of the danger zone: what is in effect, what is applied, what waits.

With a name, show all of one setting. The command reads settings.fairlead.io and
settings.longhorn.io, and Fairlead's configuration: ConfigMap fairlead in namespace
fairlead-system, or the file of --config. ClusterRole fairlead-settings-viewer allows
this, if it is bound in the storage system's namespace and in fairlead-system.`,
		Example: "  fairlead settings\n  fairlead settings storage-network\n  fairlead settings -o json",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: cli.CompleteSettings,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.Open(cmd.Context())
			if err != nil {
				return err
			}
			cli.NoteDefaults(cmd.ErrOrStderr(), p.Unread)
			return cli.Explain(showSettings(cmd.Context(), o.Out(cmd), p, o.Output, args))
		},
	}
	o.Setup(cmd)
	return cmd
}

func showSettings(ctx context.Context, out io.Writer, p cli.Target, output string, names []string) error {
	if len(names) > 0 {
		if _, err := cli.LookupSetting(names[0]); err != nil {
			return err
		}
	}
	states, unknown, err := p.Reader.SettingStates(ctx)
	if err != nil {
		return err
	}
	// A setting that is asked for by name may be outside the danger zone.
	states = slices.DeleteFunc(states, func(s cluster.SettingState) bool {
		return len(names) == 0 && !s.DangerZone || len(names) > 0 && string(s.Name) != names[0]
	})
	shown := settingsapi.DescribeAll(states, unknown, p.Storage())
	switch {
	case output == cli.OutputJSON && len(names) > 0:
		return cli.WriteJSON(out, shown.Data[0])
	case output == cli.OutputJSON:
		return cli.WriteJSON(out, shown)
	case len(names) > 0:
		writeSetting(out, shown.Data[0], time.Now())
	default:
		writeSettings(out, shown.Data, time.Now())
		if len(unknown) > 0 {
			cli.WriteLine(out, "%s", catalog.UnknownMessage(p.Name, unknown))
		}
	}
	return nil
}
