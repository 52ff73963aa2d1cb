package fences

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

func drillCommand(o *cli.ClientOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "drill <node>",
		Short: "Tell whether a healthy node could be fenced if it were lost now; change nothing",
		Long: `Tell whether a healthy node could be fenced if it were lost now; change nothing.

The command plays an incident by the rules that the controller goes by, on what is on
record and in the cluster now: by which addresses the node would be fenced, and with
which NetworkFenceClass; which volumes would wait; and what is missing. The storage
itself is not asked. Without a controller of Fairlead, no node could be fenced.
ClusterRole fairlead-fence-viewer allows this.

Exit codes:
  0  the node could be fenced now
  1  error: the cluster could not be read, or the node is not healthy; see standard error
  2  the node could not be fenced now; the table says why`,
		Example:           "  fairlead fences drill node-1\n  fairlead fences drill node-1 -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteNames(o, func() client.ObjectList { return &corev1.NodeList{} }, (*corev1.Node).GetName),
		RunE: func(cmd *cobra.Command, args []string) error {
			live, err := o.Connect()
			if err != nil {
				return err
			}
			c, unread, err := o.Configuration(cmd.Context(), live)
			if err != nil {
				return err
			}
			cli.NoteDefaults(cmd.ErrOrStderr(), unread)
			return explainFences(showDrill(cmd.Context(), o.Out(cmd), live, c.Fencing, o.Output, args[0], clock.RealClock{}))
		},
	}
}

// exitUnfenceable: the node could not be fenced now.
const exitUnfenceable cli.ExitCode = 2

var (
	errNoFencing  = errors.New("fencing is not configured: the configuration has no fencing.profiles")
	errNotHealthy = errors.New("a drill is for healthy nodes")
	errNoNode     = errors.New("no such node")
)

func showDrill(ctx context.Context, out io.Writer, live client.Reader, c config.Fencing, output, node string, now clock.PassiveClock) error {
	if !c.On() {
		return errNoFencing
	}
	facts, err := drillFacts(ctx, live, c, node, now)
	if errors.Is(err, fencingreads.ErrNodeGone) {
		return fmt.Errorf("%q: %w", node, errNoNode)
	} else if err != nil {
		return err
	}
	drilled, refusal := fence.Drill(facts)
	if refusal != nil {
		return fmt.Errorf("%s: %w; see fairlead fences %s", refusal.Message, errNotHealthy, node)
	}
	view := viewOfDrill(node, drilled)
	if len(view.Storage) > 0 && installation.Idle(ctx, live, now.Now()) {
		view.Fenceable, view.Message = false, "No controller of Fairlead leads, so nothing fences a node: fairlead check"
	}
	if !cli.IsDocument(output) {
		writeDrill(out, view)
	} else if err := cli.WriteDocument(out, output, view); err != nil {
		return err
	}
	if !view.Fenceable {
		return exitUnfenceable
	}
	return nil
}

// drillFacts are the facts of the controller, read live.
func drillFacts(ctx context.Context, live client.Reader, c config.Fencing, node string, now clock.PassiveClock) (fence.Facts, error) {
	reader, err := fencingreads.NewUncachedReader(ctx, c, live)
	var facts fence.Facts
	if err == nil {
		facts, err = reader.FenceFacts(now, nil)(ctx, node)
	}
	if lists.NotInstalled(err) {
		return facts, ErrNotInstalled
	}
	return facts, err
}

// drillView is what `fairlead fences drill -o json` prints. Fields are added, never
// renamed or removed; lists are whole, and never null.
type drillView struct {
	Node string `json:"node"`
	// Fenceable: every storage system could refuse the node, and Fairlead would ask for it.
	Fenceable bool           `json:"fenceable"`
	Storage   []drillStorage `json:"storage"`
	// Message says what is missing beside the storage.
	Message string `json:"message,omitempty"`
}

// drillStorage is a storage system with the node as client.
type drillStorage struct {
	Driver    string         `json:"driver"`
	ClusterID string         `json:"clusterID"`
	Fenceable bool           `json:"fenceable"`
	Addresses []drillAddress `json:"addresses"`
	// Class or Secret of the fence.
	Class  string `json:"class,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Volumes that would wait for the fence, or for a person if there is no fence.
	Volumes []string `json:"volumes"`
	// Reason and Message say what is missing; See is the page with the explanation.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	See     string `json:"see,omitempty"`
}

type drillAddress struct {
	CIDR     string    `json:"cidr"`
	Source   string    `json:"source"`
	LastSeen time.Time `json:"lastSeen"`
	Earlier  bool      `json:"earlier"`
}

func viewOfDrill(node string, drilled []fence.Drilled) drillView {
	v := drillView{Node: node, Fenceable: true, Storage: []drillStorage{}}
	for _, d := range drilled {
		s := drillStorage{Driver: d.Driver, ClusterID: d.ClusterID, Fenceable: d.Fence != nil, Addresses: []drillAddress{}, Volumes: append([]string{}, fence.VolumeNames(d.Volumes)...)}
		for _, a := range d.Addresses {
			s.Addresses = append(s.Addresses, drillAddress{a.CIDR, a.Source, a.LastSeen.UTC(), a.Earlier})
		}
		if f := d.Fence; f != nil {
			s.Class = f.Class
			if f.Secret != nil {
				s.Secret = f.Secret.Namespace + "/" + f.Secret.Name
			}
		}
		if r := d.Refusal; r != nil {
			s.Reason, s.Message, s.See = r.Reason, r.Message, fence.PageOf(r.Reason)
			v.Fenceable = false
		}
		v.Storage = append(v.Storage, s)
	}
	return v
}

func writeDrill(out io.Writer, v drillView) {
	switch {
	case len(v.Storage) == 0:
		cli.WriteLine(out, "Node %s is no client of protected storage: nothing would be fenced, and no volume would wait.", v.Node)
		return
	case v.Fenceable:
		cli.WriteLine(out, "Node %s could be fenced now.", v.Node)
	default:
		cli.WriteLine(out, "Node %s could NOT be fenced now.", v.Node)
	}
	if v.Message != "" {
		cli.WriteLine(out, "%s", v.Message)
	}
	cli.WriteList(out, v.Storage, func(s drillStorage) []string {
		fenceable := "yes"
		if !s.Fenceable {
			fenceable = "no: " + s.Reason
		}
		return []string{cli.OrDash(s.Driver), cli.OrDash(s.ClusterID), s.addresses(), fencedWith(s.Class, s.Secret), few(s.Volumes), fenceable}
	}, "DRIVER", "CLUSTER", "ADDRESSES", "FENCED WITH", "WOULD WAIT", "FENCEABLE")
	for _, s := range v.Storage {
		if !s.Fenceable {
			fmt.Fprintln(out)
			cli.WriteLine(out, "%s: %s (%s)", s.Reason, s.Message, s.See)
		}
	}
}

func (s drillStorage) addresses() string {
	var all []string
	for _, a := range s.Addresses {
		text := a.CIDR + " from " + a.Source
		if a.Earlier {
			text += " (earlier)"
		}
		all = append(all, text)
	}
	return few(all)
}

// few shortens a long list for tables. JSON has all elements.
func few(list []string) string { return cli.OrDash(fence.Few(list)) }
