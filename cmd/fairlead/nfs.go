package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/cluster/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/plan"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

func nfsCommand() *cobra.Command {
	o := &clientOptions{}
	cmd := &cobra.Command{
		Use:   "nfs [namespace/name]",
		Short: "Show NFS services: their servers with health, their slots, and which node uses which server",
		Long: `Show NFS services: their servers with health, their slots, and which node uses which server.

With an NFSService, show all of it: which node is on which server, through which
address, and why. The command reads NFSServices, PersistentVolumes, VolumeAttachments
and nodes; ClusterRole fairlead-nfs-viewer allows this.`,
		Example: "  fairlead nfs\n  fairlead nfs storage/files\n  fairlead nfs plan storage/files --drain 10.0.0.1\n  fairlead nfs -o json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			reader, err := o.openNFS(cmd)
			if err != nil {
				return err
			}
			return explainNFS(showNFS(cmd.Context(), cmd.OutOrStdout(), reader, o.output, args, time.Now()))
		},
	}
	o.setupCluster(cmd)
	cmd.AddCommand(nfsPlanCommand(o))
	return cmd
}

func explainNFS(err error) error { return explainBy(err, "ClusterRole fairlead-nfs-viewer") }

var (
	errNoNFSServices = errors.New("the cluster has no NFSServices: Fairlead is not installed")
	errNoNFSService  = errors.New(`no such NFSService; "fairlead nfs" lists them`)
)

// nfsReader reads page by page, with the rights of who runs the command.
type nfsReader struct {
	*nfs.NFSReader
	live *lists.Live
}

func newNFSReader(live client.Reader, drivers map[string]types.NamespacedName) nfsReader {
	paged := lists.NewLive(live)
	return nfsReader{nfs.NewNFSReader(paged, drivers), paged}
}

func (o *clientOptions) openNFS(cmd *cobra.Command) (nfsReader, error) {
	live, err := o.connect()
	if err != nil {
		return nfsReader{}, err
	}
	c, unread, err := o.configuration(cmd.Context(), live)
	if err != nil {
		return nfsReader{}, err
	}
	place{unread: unread}.noteDefaults(cmd.ErrOrStderr())
	return newNFSReader(live, nfsDrivers(c)), nil
}

func showNFS(ctx context.Context, out io.Writer, reader nfsReader, output string, args []string, now time.Time) error {
	services, err := reader.pick(ctx, args)
	if err != nil {
		return err
	}
	states, err := reader.states(ctx, services)
	if err != nil {
		return err
	}
	views := nfsViews{Data: []nfsView{}}
	for i := range services {
		views.Data = append(views.Data, viewOfNFS(&services[i], states[i]))
	}
	switch {
	case output == outputJSON:
		return writeJSON(out, views)
	case len(args) > 0:
		return writeNFSService(out, views.Data[0], now)
	}
	return writeNFS(out, views.Data, now)
}

// pick returns the NFSService that is asked for, or all.
func (r nfsReader) pick(ctx context.Context, args []string) ([]v1alpha1.NFSService, error) {
	if len(args) == 0 {
		services, err := r.Services(ctx)
		if lists.NotInstalled(err) {
			return nil, errNoNFSServices
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
		return nil, errNoNFSServices
	case err != nil:
		return nil, err
	case service == nil:
		return nil, fmt.Errorf("%q: %w", args[0], errNoNFSService)
	}
	return []v1alpha1.NFSService{*service}, nil
}

// nfsState is a service with its nodes.
type nfsState struct {
	*plan.State
	use nfs.NFSUse
}

// states of services: from their status, and what VolumeAttachments carry.
func (r nfsReader) states(ctx context.Context, services []v1alpha1.NFSService) ([]nfsState, error) {
	use, err := r.Use(ctx)
	if err != nil {
		return nil, err
	}
	zones, err := r.zones(ctx)
	if err != nil {
		return nil, err
	}
	var states []nfsState
	for i := range services {
		of := use[client.ObjectKeyFromObject(&services[i])]
		var attachments []assign.Attachment
		for _, a := range of.Attachments {
			attachments = append(attachments, assign.Attachment{
				Node: assign.Node{Name: a.Node, Zone: zones[a.Node]}, Volume: a.PersistentVolume, Address: a.Address,
			})
		}
		states = append(states, nfsState{plan.Read(&services[i], attachments), of})
	}
	return states, nil
}

// zones of the nodes.
func (r nfsReader) zones(ctx context.Context) (map[string]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.live.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	zones := map[string]string{}
	for _, n := range list.Items {
		zones[n.Name] = n.Labels[corev1.LabelTopologyZone]
	}
	return zones, nil
}
