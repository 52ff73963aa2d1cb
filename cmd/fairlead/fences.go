package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
)

func fencesCommand() *cobra.Command {
	o := &clientOptions{}
	cmd := &cobra.Command{
		Use:   "fences [node]",
		Short: "Show which nodes are lost or fenced, and what each waits for",
		Long: `Show which nodes are lost or fenced, and what each waits for.

With a node, show all of it: the volumes that it holds, the addresses by which the
storage knows it and where each comes from, what is waited for, and what to type next.
The command reads NodeFences; ClusterRole fairlead-fence-viewer allows this.`,
		Example: "  fairlead fences\n  fairlead fences node-1\n  fairlead fences drill node-1\n  fairlead fences -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			live, err := o.connect()
			if err != nil {
				return err
			}
			return explainFences(showFences(cmd.Context(), cmd.OutOrStdout(), live, o.output, args, time.Now()))
		},
	}
	o.setupCluster(cmd)
	cmd.AddCommand(drillCommand(o))
	return cmd
}

func explainFences(err error) error { return explainBy(err, "ClusterRole fairlead-fence-viewer") }

var (
	errNoNodeFences = errors.New("the cluster has no NodeFences: Fairlead is not installed")
	errNoRecord     = errors.New(`no NodeFence is of the node; "fairlead fences" lists them`)
)

func showFences(ctx context.Context, out io.Writer, live client.Reader, output string, nodes []string, now time.Time) error {
	var list v1alpha1.NodeFenceList
	if err := lists.NewLive(live).List(ctx, &list); lists.NotInstalled(err) {
		return errNoNodeFences
	} else if err != nil {
		return fmt.Errorf("listing NodeFences: %w", err)
	}
	views := fenceViews{Data: []fenceView{}}
	for i := range list.Items {
		if v := viewOfFence(&list.Items[i]); len(nodes) == 0 || v.Node == nodes[0] {
			views.Data = append(views.Data, v)
		}
	}
	if len(nodes) > 0 && len(views.Data) == 0 {
		return fmt.Errorf("%q: %w", nodes[0], errNoRecord)
	}
	slices.SortFunc(views.Data, fenceView.before)
	switch {
	case output == outputJSON:
		return writeJSON(out, views)
	case len(nodes) > 0:
		return writeFence(out, views.Data, now)
	}
	return writeFences(out, views.Data, now)
}
