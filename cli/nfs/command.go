package nfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/plan"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

func Command() *cobra.Command {
	o := &cli.ClientOptions{}
	cmd := &cobra.Command{
		Use:   "nfs [namespace/name]",
		Short: "Show NFS services: their servers with health, their slots, and which node uses which server",
		Long: `Show NFS services: their servers with health, their slots, and which node uses which server.

With an NFSService, show all of it: which node is on which server, through which
address, and why. The command reads NFSServices, PersistentVolumes, VolumeAttachments
and nodes; ClusterRole fairlead-nfs-viewer allows this.`,
		Example:           "  fairlead nfs\n  fairlead nfs storage/files\n  fairlead nfs plan storage/files --drain 10.0.0.1\n  fairlead nfs -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeServices(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			reader, err := openNFS(o, cmd)
			if err != nil {
				return err
			}
			return explainNFS(showNFS(cmd.Context(), o.Out(cmd), reader, o.Output, args, time.Now()))
		},
	}
	o.SetupCluster(cmd)
	cmd.AddCommand(nfsPlanCommand(o))
	return cmd
}

func explainNFS(err error) error { return cli.ExplainBy(err, "ClusterRole fairlead-nfs-viewer") }

// ErrNotInstalled is the error of a cluster without NFSServices.
var ErrNotInstalled = errors.New("the cluster has no kind NFSService: Fairlead's CustomResourceDefinitions are not installed")

var errNoNFSService = errors.New(`no such NFSService; "fairlead nfs" lists them`)

// nfsReader reads page by page, with the rights of the user.
type nfsReader struct{ *nfsreads.Reader }

func newNFSReader(live client.Reader, drivers nfsreads.Drivers) nfsReader {
	return nfsReader{&nfsreads.Reader{Objects: lists.NewLive(live), Drivers: drivers}}
}

func openNFS(o *cli.ClientOptions, cmd *cobra.Command) (nfsReader, error) {
	live, err := o.Connect()
	if err != nil {
		return nfsReader{}, err
	}
	c, unread, err := o.Configuration(cmd.Context(), live)
	if err != nil {
		return nfsReader{}, err
	}
	cli.NoteDefaults(cmd.ErrOrStderr(), unread)
	return newNFSReader(live, c.NFS.DefaultServices()), nil
}

func showNFS(ctx context.Context, out io.Writer, reader nfsReader, output string, args []string, now time.Time) error {
	shown, err := reader.views(ctx, args)
	if err != nil {
		return err
	}
	views := nfsViews{Data: shown}
	switch {
	case cli.IsDocument(output):
		return cli.WriteDocument(out, output, views)
	case len(args) > 0:
		return writeNFSService(out, views.Data[0], now)
	}
	return writeNFS(out, views.Data, now)
}

// Read reads all NFSServices with the nodes on their servers. drivers have the default service of each CSI driver.
func Read(ctx context.Context, live client.Reader, drivers nfsreads.Drivers) ([]View, error) {
	return newNFSReader(live, drivers).views(ctx, nil)
}

func (r nfsReader) views(ctx context.Context, names []string) ([]View, error) {
	services, err := r.pick(ctx, names)
	if err != nil {
		return nil, err
	}
	states, err := r.states(ctx, services)
	if err != nil {
		return nil, err
	}
	views := []View{}
	for i := range services {
		views = append(views, viewOfNFS(&services[i], states[i]))
	}
	return views, nil
}

// pick returns the named NFSService, or all.
func (r nfsReader) pick(ctx context.Context, args []string) ([]v1alpha1.NFSService, error) {
	if len(args) == 0 {
		services, err := r.Services(ctx)
		if lists.NotInstalled(err) {
			return nil, ErrNotInstalled
		}
		return services, err
	}
	key, err := volume.ParseService(args[0])
	if err != nil {
		return nil, err
	}
	service, err := r.Service(ctx, key)
	switch {
	case lists.NotInstalled(err):
		return nil, ErrNotInstalled
	case err != nil:
		return nil, err
	case service == nil:
		return nil, fmt.Errorf("%q: %w%s", args[0], errNoNFSService, r.suggest(ctx, args[0]))
	}
	return []v1alpha1.NFSService{*service}, nil
}

// suggest names that are like one that does not exist.
func (r nfsReader) suggest(ctx context.Context, name string) string {
	services, err := r.Services(ctx)
	if err != nil {
		return ""
	}
	var names []string
	for i := range services {
		names = append(names, client.ObjectKeyFromObject(&services[i]).String())
	}
	return cli.DidYouMean(name, names)
}

func completeServices(o *cli.ClientOptions) cobra.CompletionFunc {
	return cli.CompleteNames(o, func() client.ObjectList { return &v1alpha1.NFSServiceList{} }, func(s *v1alpha1.NFSService) string {
		return client.ObjectKeyFromObject(s).String()
	})
}

// nfsState is a service with its nodes.
type nfsState struct {
	*plan.State
	use nfsreads.Use
}

// states of services, from their status and VolumeAttachments.
func (r nfsReader) states(ctx context.Context, services []v1alpha1.NFSService) ([]nfsState, error) {
	uses, err := r.Uses(ctx)
	if err != nil {
		return nil, err
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.Objects.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	zones := map[string]string{}
	for _, n := range nodes.Items {
		zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	var states []nfsState
	for i := range services {
		use := ptr.Deref(uses[client.ObjectKeyFromObject(&services[i])], nfsreads.Use{})
		var attachments []assign.Attachment
		for _, a := range use.Attachments {
			attachments = append(attachments, assign.Attachment{
				Node: assign.Node{Name: a.Node, Zone: zones[a.Node]}, Volume: a.PersistentVolume, Address: a.Address,
			})
		}
		states = append(states, nfsState{plan.Read(&services[i], attachments), use})
	}
	return states, nil
}
