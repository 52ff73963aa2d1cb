// Package status is `fairlead status` and `fairlead volumes`: settings in effect, what waits, and which
// data paths are wrong, on one screen.
package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/datapath"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

const exitCodes = `
Exit codes:
  0  all is as it should be
  1  error: the cluster could not be read; see standard error
  2  something waits, or a node is lost; the output says for what
  3  something is wrong: `

// interval between two readings of --watch.
const interval = 2 * time.Second

// Command is `fairlead status`.
func Command() *cobra.Command {
	o := &cli.ClientOptions{}
	watch := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show on one screen what is in effect, what waits, and which data paths are wrong",
		Long: `Show on one screen what is in effect, what waits and for what, which data paths of RWX
volumes are not as they should be, lost nodes, and NFS services. The command only reads.
What seems wrong is looked at once more, two seconds later.
ClusterRole fairlead-planner allows this; fairlead-fence-viewer and fairlead-nfs-viewer
allow the parts on nodes and NFS services.
` + exitCodes + `Fairlead itself does not work, a data path disagrees, a node may
     write to volumes that another node has now, a value
     must be corrected, the network is missing or broken, or an NFS service is not Ready`,
		Example: "  fairlead status\n  fairlead status --watch\n  fairlead status -o json\n  fairlead status volume pvc-1f0c",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd, o, watch, func(out io.Writer, v View, now time.Time) (datapath.State, error) {
				if cli.IsDocument(o.Output) {
					return v.State, cli.WriteDocument(out, o.Output, v)
				}
				writeStatus(out, v, cli.Program(cmd), o.ClusterName(), now)
				return v.State, nil
			})
		},
	}
	o.Setup(cmd)
	cmd.PersistentFlags().BoolVarP(&watch, "watch", "w", false, "look every two seconds, and print what has changed")
	cmd.AddCommand(volumeCommand(o, &watch))
	return cmd
}

func volumeCommand(o *cli.ClientOptions, watch *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "volume NAME",
		Short: "Follow one RWX volume from its workloads to its server",
		Long: `Follow one RWX volume from its workloads to its server: each hop with its network and its
addresses, and what disagrees. NAME is the storage system's name of the volume, for
Longhorn that of the PersistentVolume.
` + exitCodes + "a hop of a data path disagrees",
		Example:           "  fairlead status volume pvc-1f0c",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeVolumes(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd, o, *watch, showVolume(o, args[0]))
		},
	}
}

func completeVolumes(o *cli.ClientOptions) cobra.CompletionFunc {
	return cli.CompleteNames(o, func() client.ObjectList { return &longhorn.VolumeList{} }, func(v *longhorn.Volume) string {
		if !v.Spec.Shared() {
			return ""
		}
		return v.Name
	})
}

func showVolume(o *cli.ClientOptions, name string) show {
	return func(out io.Writer, v View, _ time.Time) (datapath.State, error) {
		volume, err := v.Find(name)
		if err != nil {
			return "", err
		}
		if cli.IsDocument(o.Output) {
			return volume.State, cli.WriteDocument(out, o.Output, volume)
		}
		writeVolume(out, volume, o.ClusterName())
		return volume.State, nil
	}
}

// VolumesCommand is `fairlead volumes`.
func VolumesCommand() *cobra.Command {
	o := &cli.ClientOptions{}
	watch := false
	cmd := &cobra.Command{
		Use:   "volumes [NAME]",
		Short: "Show each RWX volume: nodes, workloads, network now and wanted, server, what it waits for",
		Long: `Show each RWX volume: the nodes and workloads that use it, its network now and the wanted
one, the addresses of its server, and what it waits for; with a name, each hop of this volume,
as "fairlead status volume" does. The command only reads.
ClusterRole fairlead-planner allows this.
` + exitCodes + "a hop of a data path disagrees",
		Example:           "  fairlead volumes\n  fairlead volumes pvc-1f0c\n  fairlead volumes -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeVolumes(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return run(cmd, o, watch, showVolume(o, args[0]))
			}
			return run(cmd, o, watch, func(out io.Writer, v View, _ time.Time) (datapath.State, error) {
				state := datapath.OK
				volumes := append([]datapath.Path{}, v.Volumes()...)
				for _, volume := range volumes {
					state = datapath.Worse(state, volume.State)
				}
				if cli.IsDocument(o.Output) {
					return state, cli.WriteDocument(out, o.Output, map[string][]datapath.Path{"data": volumes})
				}
				writeVolumes(out, volumes, v.Installation.Findings, o.ClusterName())
				return state, nil
			})
		},
	}
	o.Setup(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "look every two seconds, and print what has changed")
	return cmd
}

// show writes a view and returns its state.
type show func(out io.Writer, v View, now time.Time) (datapath.State, error)

// reading is one look at the cluster.
type reading struct {
	view  View
	text  string
	state datapath.State
}

// differs reports whether there is something new to read: an age that grows is not.
func (r reading) differs(o reading) bool {
	return r.text != o.text && !reflect.DeepEqual(r.view, o.view)
}

// run reads once, or with --watch until the command is interrupted. The exit code is that of the last reading.
func run(cmd *cobra.Command, o *cli.ClientOptions, watch bool, show show) error {
	target, _, err := o.OpenAll(cmd)
	if err != nil {
		return err
	}
	look := func(ctx context.Context) (reading, error) {
		v, err := readTwice(ctx, target, time.Now)
		now := time.Now()
		if err != nil {
			return reading{}, cli.ExplainBy(err, "ClusterRole fairlead-planner")
		}
		text := o.Page(cmd)
		state, err := show(text, v, now)
		return reading{v, text.String(), state}, err
	}
	last, err := look(cmd.Context())
	if err != nil {
		return err
	}
	fmt.Fprint(cmd.OutOrStdout(), last.text)
	if watch {
		last = follow(cmd, look, last)
	}
	switch last.state {
	case datapath.Wrong:
		return cli.ExitWrong
	case datapath.Waiting:
		return cli.ExitWaits
	}
	return nil
}

// wait returns false if the command is interrupted first.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// follow prints each reading that differs from the previous one. A repeated failure is reported once.
func follow(cmd *cobra.Command, look func(context.Context) (reading, error), last reading) reading {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	failed := ""
	for {
		select {
		case <-cmd.Context().Done():
			return last
		case <-ticks.C:
		}
		next, err := look(cmd.Context())
		switch {
		case errors.Is(err, context.Canceled):
			return last
		case err != nil:
			if err.Error() != failed {
				failed = err.Error()
				cli.WriteLine(cmd.ErrOrStderr(), "fairlead: %v; looking again every %s", err, interval)
			}
			continue
		}
		failed = ""
		if next.differs(last) {
			fmt.Fprintf(cmd.OutOrStdout(), "\n%s", next.text)
		}
		last = next
	}
}
