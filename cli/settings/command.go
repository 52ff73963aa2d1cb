// Package settings is `fairlead settings`: the command shows the settings of the danger zone.
package settings

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/describe"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

func Command() *cobra.Command {
	o := &cli.ClientOptions{}
	cmd := &cobra.Command{
		Use:   "settings [name]",
		Short: "Show the settings of the danger zone: what is in effect, what is applied, what waits",
		Long: `Show the settings of the danger zone: what is in effect, what is applied, what waits.

With a name, show all of one setting; the exit code says whether it is applied. The command reads settings.fairlead.io and
settings.longhorn.io, and Fairlead's configuration: ConfigMap fairlead in namespace
fairlead-system, or the file of --config. ClusterRole fairlead-settings-viewer allows
this, if it is bound in the storage system's namespace and in fairlead-system.

Exit codes:
  0  the settings are shown; with a name: the setting is applied
  1  error: the cluster could not be read, or the name is unknown; see standard error
  2  with a name: the setting waits, or is being applied
  3  with a name: the value must be corrected`,
		Example: "  fairlead settings\n  fairlead settings storage-network\n  fairlead settings -o json",
		Args:    cobra.MaximumNArgs(1),

		ValidArgsFunction: cli.CompleteSettings,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.Open(cmd)
			if err != nil {
				return err
			}
			installation.Warn(cmd.Context(), cmd.ErrOrStderr(), p.Live, time.Now())
			return cli.Explain(showSettings(cmd.Context(), o.Out(cmd), cmd.ErrOrStderr(), p, o.Output, args))
		},
	}
	o.Setup(cmd)
	return cmd
}

func showSettings(ctx context.Context, out, warnings io.Writer, p cli.Target, output string, names []string) error {
	if len(names) > 0 {
		if _, err := cli.LookupSetting(names[0]); err != nil {
			return err
		}
	}
	states, unknown, err := p.Reader.SettingStates(ctx)
	if err != nil {
		return err
	}
	warnOfNetworks(ctx, warnings, p, states, names)
	// A setting that is asked for by name may be outside the danger zone.
	states = slices.DeleteFunc(states, func(s describe.State) bool {
		return len(names) == 0 && !s.DangerZone || len(names) > 0 && string(s.Name) != names[0]
	})
	shown := describe.List(states, unknown, p.Longhorn.Names())
	switch {
	case cli.IsDocument(output) && len(names) > 0:
		err = cli.WriteDocument(out, output, shown.Data[0])
	case cli.IsDocument(output):
		return cli.WriteDocument(out, output, shown)
	case len(names) > 0:
		if states[0].Gate == catalog.SharedVolumesDetached && p.Longhorn.Networks.Gate == rollout.GateNode {
			shown.Data[0].Gate += "; to join, on the node alone (longhorn.networks.gate: node)"
		}
		writeSetting(out, shown.Data[0], time.Now())
	default:
		writeSettings(out, shown.Data, time.Now())
		if len(unknown) > 0 {
			cli.WriteLine(out, "%s", catalog.UnknownMessage(unknown))
		}
	}
	switch {
	case err != nil || len(names) == 0 || states[0].Applied:
		return err
	case states[0].Malformed():
		return cli.ExitWrong
	}
	return cli.ExitWaits
}

// warnOfNetworks warns of the networks of the settings that are shown. It says nothing to users who may not read networks.
func warnOfNetworks(ctx context.Context, out io.Writer, p cli.Target, states []describe.State, names []string) {
	networks, err := reads.Networks(ctx, p.Live)
	if err != nil {
		return
	}
	values := catalog.Values{}
	for _, s := range states {
		values[s.Name] = s.Value
	}
	for _, s := range states {
		if len(names) > 0 && string(s.Name) != names[0] {
			continue
		}
		if problem := catalog.NetworkProblem(networkOf(s, values, p.Longhorn.Names()), networks); problem != "" {
			cli.WriteLine(out, "Warning: %s: %s", s.Name, problem)
		}
	}
}

// networkOf is the network that a setting chooses. The switch takes that of storage-network, unless the newer setting names one.
func networkOf(s describe.State, values catalog.Values, p longhorn.Names) multus.Network {
	var chosen multus.Network
	switch {
	case s.NamesNetwork:
		chosen, _ = multus.ParseNetwork(s.Value.Text) // a malformed value is reported as such
	case s.Name == catalog.StorageNetworkForRWX && s.Value.Text == "true" && values[catalog.EndpointNetworkForRWX].Text == "":
		shared, _ := catalog.SharedVolumeNetwork(values, p)
		chosen = shared.Network
	}
	return chosen
}

func writeSettings(out io.Writer, shown []v1.Setting, now time.Time) {
	cli.WriteRows(out, shown, func(s v1.Setting) []string {
		return []string{s.Name, cli.Cell(s.Value), s.Source, fmt.Sprint(s.Applied), cli.Ago(s.Since, now), s.Reason}
	}, "NAME", "VALUE", "SOURCE", "APPLIED", "SINCE", "REASON")
}

// writeSetting shows all facts on one setting.
func writeSetting(out io.Writer, s v1.Setting, now time.Time) {
	cli.WriteFacts(out, [][2]string{
		{"Name:", s.Name},
		{"Value:", cli.Value(s.Value)},
		{"Source:", s.Source},
		{"Applied:", fmt.Sprint(s.Applied)},
		{"Since:", cli.Ago(s.Since, now)},
		{"Reason:", s.Reason},
		{"Default:", cli.Value(s.Default)},
		{"Allowed:", s.Allowed},
		{"Gate:", s.Gate},
		{"Affects:", s.Affects},
		{"Namespace:", s.Namespace},
	})
	if len(s.Blockers) == 0 {
		return
	}
	var blockers []v1.Blocker
	for _, b := range s.Blockers {
		// Several components may wait for the same, such as a maintenance window.
		if !slices.ContainsFunc(blockers, func(o v1.Blocker) bool { return o.Kind == b.Kind && o.Name == b.Name && o.Message == b.Message }) {
			blockers = append(blockers, b)
		}
	}
	fmt.Fprintln(out)
	cli.WriteRows(out, blockers, func(b v1.Blocker) []string {
		return []string{b.Kind + "/" + b.Name, cli.List(b.Nodes), cli.List(b.Workloads), b.Message, cli.Next(b, s.Namespace)}
	}, "BLOCKED BY", "NODES", "WORKLOADS", "WHAT TO DO", "NEXT")
	fmt.Fprintln(out)
	cli.WriteLine(out, "The setting waits for the above now. \"fairlead plan\" shows what comes after that, as far as it can be foreseen.")
}
