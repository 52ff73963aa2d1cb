package nfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/plan"
)

// nfsChanges are the flags of a plan.
type nfsChanges struct{ add, drain, remove, weight []string }

func nfsPlanCommand(o *cli.ClientOptions) *cobra.Command {
	var changes nfsChanges
	cmd := &cobra.Command{
		Use:   "plan <namespace/name>",
		Short: "Tell which nodes a change of servers would move, and which must remount; change nothing",
		Long: `Tell which nodes a change of servers would move, and which must remount; change nothing.

The plan is made from the NFSService's status and the addresses that VolumeAttachments
carry, by the functions that the controller goes by. New servers count as healthy.
Without changes, the plan is what the controller still has to do. ClusterRole
fairlead-nfs-viewer allows this.

Exit codes:
  0  the change would be done at once, or nothing moves
  1  error: the cluster could not be read, or the change is refused; see standard error
  2  something would wait that does not wait already: nodes must remount, or no
     server takes them; the plan says which`,
		Example: `  fairlead nfs plan storage/files --add 10.0.0.4 --add 10.0.0.5:2050
  fairlead nfs plan storage/files --drain 10.0.0.1
  fairlead nfs plan storage/files --remove 10.0.0.1 --weight 10.0.0.2=3 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeServices(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			reader, err := openNFS(o, cmd)
			if err != nil {
				return err
			}
			return explainNFS(showNFSPlan(cmd.Context(), o.Out(cmd), reader, o.Output, args, changes))
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&changes.add, "add", nil, "address[:port] of a server to add; may be given several times")
	flags.StringArrayVar(&changes.drain, "drain", nil, "address[:port] of a server to drain; may be given several times")
	flags.StringArrayVar(&changes.remove, "remove", nil, "address[:port] of a server to remove; may be given several times")
	flags.StringArrayVar(&changes.weight, "weight", nil, "address[:port]=weight of a server; may be given several times")
	return cmd
}

var errNFSChange = errors.New("the change is refused")

func showNFSPlan(ctx context.Context, out io.Writer, reader nfsReader, output string, args []string, changes nfsChanges) error {
	services, err := reader.pick(ctx, args)
	if err != nil {
		return err
	}
	states, err := reader.states(ctx, services)
	if err != nil {
		return err
	}
	state := states[0]
	change, problems := changes.parse(state.Service.Port)
	planned, found := state.Change(change)
	if problems = append(problems, found...); len(problems) > 0 {
		return fmt.Errorf("%w:\n%w", errNFSChange, problems.Err())
	}
	if cli.IsDocument(output) {
		err = cli.WriteDocument(out, output, planned)
	} else {
		err = writeNFSPlan(out, planned)
	}
	if err != nil {
		return fmt.Errorf("showing the plan: %w", err)
	}
	if planned.Outcome == plan.Waits {
		return cli.ExitWaits
	}
	return nil
}

// parse reads the flags; port is the service's, for addresses without one.
func (c nfsChanges) parse(port uint16) (nfs.Change, nfs.Problems) {
	var problems nfs.Problems
	change := nfs.Change{Drain: c.drain, Remove: c.remove, Weights: map[string]int32{}}
	for i, text := range c.add {
		endpoint, err := nfs.ParseEndpoint(text, port)
		if err != nil {
			problems.Add(nfs.Index("add", i), "%s", err)
			continue
		}
		change.Add = append(change.Add, v1alpha1.NFSBackend{Address: endpoint.Addr().String(), Port: int32(endpoint.Port())})
	}
	for i, text := range c.weight {
		path := nfs.Index("weight", i)
		address, number, _ := strings.Cut(text, "=")
		weight, err := strconv.ParseInt(number, 10, 32)
		if err != nil {
			problems.Add(path, "%q is not address=weight: write 10.0.0.1=2", text)
			continue
		}
		if _, ok := change.Weights[address]; ok {
			problems.Add(path, "%s has a weight already: remove one of them", address)
			continue
		}
		change.Weights[address] = int32(weight)
	}
	return change, problems
}
