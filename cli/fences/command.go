// Package fences is `fairlead fences`: the command shows NodeFences and drills the loss of a node.
package fences

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
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

func Command() *cobra.Command {
	o := &cli.ClientOptions{}
	cmd := &cobra.Command{
		Use:   "fences [node]",
		Short: "Show which nodes are lost or fenced, and what each waits for",
		Long: `Show which nodes are lost or fenced, and what each waits for.

With a node, show all of it: the volumes that it holds, the addresses by which the
storage knows it and where each comes from, what is waited for, and what to type next.
The command reads NodeFences, Nodes if no controller of Fairlead leads, and VolumeAttachments
if a node is to be tainted; ClusterRole fairlead-fence-viewer allows this. With the rights
that "fairlead status" needs, it also warns if Fairlead does not work: the records are old
then.

Exit codes:
  0  all nodes that are shown are healthy
  1  error: the cluster could not be read, or the node has no NodeFence; see standard error
  2  a node that is shown is lost, or has not been readmitted yet
  3  a node that is shown may write to volumes that another node has now`,
		Example:           "  fairlead fences\n  fairlead fences node-1\n  fairlead fences drill node-1\n  fairlead fences -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteNames(o, func() client.ObjectList { return &v1alpha1.NodeFenceList{} }, func(n *v1alpha1.NodeFence) string { return n.Spec.NodeName }),
		RunE: func(cmd *cobra.Command, args []string) error {
			live, err := o.Connect()
			if err != nil {
				return err
			}
			installation.Warn(cmd.Context(), cmd.ErrOrStderr(), live, time.Now())
			return explainFences(showFences(cmd.Context(), o.Out(cmd), live, o.Output, args, time.Now()))
		},
	}
	o.SetupCluster(cmd)
	cmd.AddCommand(drillCommand(o))
	return cmd
}

func explainFences(err error) error { return cli.ExplainBy(err, "ClusterRole fairlead-fence-viewer") }

// ErrNotInstalled is the error of a cluster without NodeFences.
var ErrNotInstalled = errors.New("the cluster has no kind NodeFence: Fairlead's CustomResourceDefinitions are not installed")

var errNoRecord = errors.New(`no NodeFence is of the node; "fairlead fences" lists them`)

// Read reads all NodeFences, the urgent ones first.
func Read(ctx context.Context, live client.Reader) ([]View, error) {
	var list v1alpha1.NodeFenceList
	if err := lists.NewLive(live).List(ctx, &list); lists.NotInstalled(err) {
		return nil, ErrNotInstalled
	} else if err != nil {
		return nil, fmt.Errorf("listing NodeFences: %w", err)
	}
	views := []View{}
	for i := range list.Items {
		views = append(views, viewOfFence(&list.Items[i]))
	}
	slices.SortFunc(views, View.before)
	nameUnfenced(ctx, lists.NewLive(live), views)
	return views, nil
}

func showFences(ctx context.Context, out io.Writer, live client.Reader, output string, nodes []string, now time.Time) error {
	views, err := Read(ctx, live)
	if err == nil && installation.Idle(ctx, live, now) {
		err = CompareNodes(ctx, live, views)
	}
	if err != nil {
		return err
	}
	if len(nodes) > 0 {
		var known []string
		for _, v := range views {
			known = append(known, v.Node)
		}
		views = slices.DeleteFunc(views, func(v View) bool { return v.Node != nodes[0] })
		if len(views) == 0 {
			return fmt.Errorf("%q: %w%s", nodes[0], errNoRecord, cli.DidYouMean(nodes[0], known))
		}
	}
	switch {
	case cli.IsDocument(output):
		if err := cli.WriteDocument(out, output, viewList{Data: views}); err != nil {
			return err
		}
	case len(nodes) > 0:
		writeFence(out, views, now)
	default:
		writeFences(out, views, now)
	}
	switch {
	case slices.ContainsFunc(views, View.MayWrite):
		return cli.ExitWrong
	case slices.ContainsFunc(views, View.IsLost):
		return cli.ExitWaits
	}
	return nil
}
