// Package check is `fairlead check`: whether a cluster has what Fairlead needs.
package check

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/discovery"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

// Command is `fairlead check`.
func Command() *cobra.Command {
	o := &cli.ClientOptions{}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Look whether this cluster has what Fairlead needs; before an installation and after",
		Long: `Look whether this cluster has what Fairlead needs: Kubernetes, cert-manager, Multus and its
networks, the storage system's version, and before an installation your rights. Once
Fairlead is installed, the command looks at Fairlead itself too. The command only reads.
Without --config it takes the configuration in the cluster, else the default one.

Exit codes:
  0  all is there
  1  error: the cluster could not be read; see standard error
  2  something is missing that you may not need; the output says for what
  3  something is missing that Fairlead needs, or Fairlead itself does not work`,
		Example: "  fairlead check\n  fairlead check --config my-configuration.yaml -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			view, err := look(cmd, o)
			if err != nil {
				return cli.ExplainBy(err, "ClusterRole fairlead-planner")
			}
			return show(o.Out(cmd), view, o.Output)
		},
	}
	o.Setup(cmd)
	return cmd
}

func look(cmd *cobra.Command, o *cli.ClientOptions) (View, error) {
	target, _, err := o.OpenAny(cmd)
	if err != nil {
		return View{}, err
	}
	restConfig, err := o.RestConfig("cli")
	if err != nil {
		return View{}, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(restConfig)
	if err != nil {
		return View{}, err
	}
	server, err := d.ServerVersion()
	if err != nil {
		return View{}, err
	}
	f, err := read(cmd.Context(), target, server.GitVersion, time.Now())
	return f.view(), err
}

func show(out io.Writer, v View, output string) error {
	if cli.IsDocument(output) {
		if err := cli.WriteDocument(out, output, v); err != nil {
			return err
		}
	} else {
		cli.WriteRows(out, v.Findings, func(f Finding) []string {
			return []string{f.Name, string(f.State), f.What, cli.OrDash(f.Do)}
		}, "PART", "STATE", "WHAT", "WHAT TO DO")
	}
	switch v.State {
	case datapath.Wrong:
		return cli.ExitWrong
	case datapath.Waiting:
		return cli.ExitWaits
	}
	return nil
}
