package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/controllers/nfs"
	"github.com/fairlead-io/fairlead/controllers/nfs/attach"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/controllers/nfs/services"
	"github.com/fairlead-io/fairlead/controllers/ondat"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
)

// Limits of requests to the API server per second. An attachment takes two requests.
// The API server protects itself by priority and fairness.
const csiQPS, csiBurst = 500, 1000

type csiControllerOptions struct {
	cli.ClusterOptions
	managerOptions
}

func csiControllerCommand() *cobra.Command {
	o := &csiControllerOptions{}
	cmd := &cobra.Command{
		Use:   "csi-controller",
		Short: "Publish NFS services, and attach their volumes to nodes",
		Args:  cobra.NoArgs,
	}
	o.Setup(cmd, o.run)
	o.flags(cmd)
	return cmd
}

var errNothingToServe = errors.New("the configuration has nfs.mode: off and no section ondat, so there is nothing to serve: change one of the two, or do not run csi-controller")

// run is the composition root of the controller of NFS services.
func (o *csiControllerOptions) run(ctx context.Context, log *slog.Logger) error {
	configuration, err := config.Load(o.ConfigFile)
	if err != nil {
		return err
	}
	if configuration.NFS.Mode == config.Off && configuration.Ondat == nil {
		return errNothingToServe
	}
	restConfig, err := o.RestConfig("csi-controller")
	if err != nil {
		return err
	}
	restConfig.QPS, restConfig.Burst = csiQPS, csiBurst
	scheme, err := reads.NewScheme()
	if err != nil {
		return err
	}
	caches, err := csiCaches(configuration.NFS)
	if err != nil {
		return err
	}
	if configuration.Ondat != nil {
		ondat.Caches(&caches)
	}
	mgr, err := o.manager(restConfig, scheme, caches, nil, "fairlead-csi-controller")
	if err != nil {
		return err
	}
	if configuration.NFS.Mode == config.On {
		writer := &frontend.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Log: log}
		if err := setupNFS(ctx, mgr, configuration.NFS, writer, log); err != nil {
			return err
		}
	}
	if configuration.Ondat != nil {
		if err := ondat.Setup(mgr, *configuration.Ondat, log); err != nil {
			return err
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// csiCaches returns the cache options of the configured services. With Ondat alone, the CRD of NFSServices is not needed.
func csiCaches(c config.NFS) (cache.Options, error) {
	if c.Mode == config.Off {
		return nfs.Published()
	}
	return nfs.Caches(nfsreads.Drivers(c.DefaultServices()).Names())
}

// setupNFS registers the controllers of NFS services.
func setupNFS(ctx context.Context, mgr manager.Manager, c config.NFS, writer *frontend.Writer, log *slog.Logger) error {
	if err := attach.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	watching, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("building the client of watches: %w", err)
	}
	drivers, annotations := nfsreads.Drivers(c.DefaultServices()), map[string]config.NodeAnnotations{}
	for _, d := range c.Drivers {
		annotations[d.Name] = d.NodeAnnotations
	}
	assignments := pools.New()
	observer := pools.NewObserver(assignments, drivers, mgr.GetCache(), log)
	err = setup(mgr,
		&services.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: writer, Pools: assignments, Drivers: drivers, Observer: observer,
			Servers: &services.Watches{Client: watching}, Events: mgr.GetEventRecorder("fairlead"), Clock: clock.RealClock{}, Log: log,
		},
		&attach.Reconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Pools: assignments, Observer: observer, Drivers: drivers, Annotations: annotations,
			Clock: clock.RealClock{}, Log: log,
		},
		&attach.VolumeReleaser{Client: mgr.GetClient(), Drivers: drivers},
		&attach.Annotator{Client: mgr.GetClient(), Pools: assignments, Drivers: drivers, Annotations: annotations, Observer: observer, Log: log},
	)
	if err != nil {
		return err
	}
	if err := mgr.Add(observer); err != nil {
		return fmt.Errorf("adding the observer of attachments: %w", err)
	}
	return nil
}
