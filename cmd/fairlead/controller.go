package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/controllers/apply"
	"github.com/fairlead-io/fairlead/controllers/cabundle"
	"github.com/fairlead-io/fairlead/controllers/endpoints"
	"github.com/fairlead-io/fairlead/controllers/fencing"
	"github.com/fairlead-io/fairlead/controllers/tainting"
	"github.com/fairlead-io/fairlead/controllers/volumes"
	"github.com/fairlead-io/fairlead/controllers/workloads"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// A killed leader is replaced after leaseDuration and up to 2.2 retries. A leader that can't
// renew exits after renewDeadline and one retry. Replicas count by their own clocks, so a wrong
// time of day does no harm. Longer values would only keep a leader through longer outages of
// the API server, in which it can do nothing. Each replica asks once per leaseRetry.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 5 * time.Second
	leaseRetry    = time.Second
	// shutdownTimeout is shorter than the Deployment's terminationGracePeriodSeconds (30 s).
	shutdownTimeout = 20 * time.Second
)

type controllerOptions struct {
	cli.ClusterOptions
	managerOptions
	injectCAFrom string
}

func controllerCommand() *cobra.Command {
	o := &controllerOptions{}
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Apply settings, and keep shared volumes in line",
		Args:  cobra.NoArgs,
	}
	o.Setup(cmd, o.run)
	o.flags(cmd)
	cmd.Flags().StringVar(&o.injectCAFrom, "inject-ca-from", "", "<namespace>/<name> of the Secret whose CA is written into the webhook configurations")
	return cmd
}

// run is the composition root of the controller.
func (o *controllerOptions) run(ctx context.Context, log *slog.Logger) error {
	configuration, err := config.Load(o.ConfigFile)
	if err != nil {
		return err
	}
	secret, err := objectKey("inject-ca-from", o.injectCAFrom)
	if err != nil {
		return err
	}
	restConfig, err := o.RestConfig("controller")
	if err != nil {
		return err
	}
	scheme, err := reads.NewScheme()
	if err != nil {
		return err
	}
	var names *longhorn.Names
	if configuration.Longhorn != nil {
		names = ptr.To(configuration.Longhorn.Names())
	}
	cached, err := caches.ControllerCache(names, configuration.Fencing)
	if err != nil {
		return fmt.Errorf("choosing what to cache: %w", err)
	}
	ca := &cabundle.Reconciler{Secret: secret, Configuration: registration.ConfigurationName, Log: log}
	if secret.Name != "" {
		ca.Caches(&cached)
	}
	mgr, err := o.manager(restConfig, scheme, cached, caches.NewCache, reads.LeaseName)
	if err != nil {
		return err
	}
	if names != nil {
		if err := errors.Join(reads.IndexClaims(ctx, mgr.GetFieldIndexer()), reads.IndexAddresses(ctx, mgr.GetFieldIndexer())); err != nil {
			return err
		}
	}
	if names != nil || configuration.Fencing.On() {
		if err := reads.IndexNodes(ctx, mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	if configuration.Longhorn != nil {
		if err := setupLonghorn(mgr, configuration.Longhorn, configuration.ClusterDomain, log); err != nil {
			return err
		}
	}
	bindings := &fencing.Bindings{
		Names: []string{registration.UnwatchedAttachments, registration.UnwatchedVolumes}, On: configuration.Fencing.Holds(),
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Log: log,
	}
	if err := mgr.Add(bindings); err != nil {
		return fmt.Errorf("adding the switch of the policies for attachments: %w", err)
	}
	if configuration.Fencing.On() {
		if err := setupFencing(ctx, mgr, configuration.Fencing, log); err != nil {
			return err
		}
	}
	if secret.Name != "" {
		ca.Client = mgr.GetClient()
		if err := ca.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// setupLonghorn registers the controllers of the duties that are on, one each.
func setupLonghorn(mgr manager.Manager, c *config.Longhorn, clusterDomain string, log *slog.Logger) error {
	names, duties := c.Names(), c.Duties
	var objects client.Reader = mgr.GetClient()
	cached, live := reads.NewReader(names, objects, objects), reads.NewReader(names, lists.NewLive(mgr.GetAPIReader()), objects)
	recorder := mgr.GetEventRecorder("fairlead")
	var controllers []controller
	if duties.Settings != config.Off {
		controllers = append(controllers, &apply.Reconciler{
			Names: names, Applies: duties.Settings == config.Apply, Duties: dutiesByName(duties), VolumeNetworks: duties.ServesVolumeNetworks(), Policy: c.Policy(),
			Client: mgr.GetClient(), Cached: cached, Live: live, API: mgr.GetAPIReader(), Events: recorder, Clock: clock.RealClock{}, Log: log,
		})
	}
	if duties.ServesVolumeNetworks() {
		controllers = append(controllers, &volumes.Contests{Names: names, Cached: cached, Events: recorder, Log: log})
	}
	if duties.Services == config.On {
		controllers = append(controllers, &volumes.Reconciler{
			Names: names, ClusterDomain: clusterDomain,
			Client: mgr.GetClient(), Live: live, API: mgr.GetAPIReader(), Events: recorder, Clock: clock.RealClock{}, Log: log,
		})
	}
	if duties.Endpoints == config.Off {
		releaser := &endpoints.Releaser{Names: names, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Log: log}
		if err := mgr.Add(releaser); err != nil {
			return fmt.Errorf("adding the release of endpoints: %w", err)
		}
	} else {
		controllers = append(controllers, &endpoints.Reconciler{
			Names: names, Classic: duties.Endpoints == config.On, DeadMounts: duties.Workloads == config.On,
			Client: mgr.GetClient(), Cached: cached, Live: mgr.GetAPIReader(), Events: recorder, Clock: clock.RealClock{}, Log: log,
		})
	}
	if duties.Workloads == config.On || duties.Remount == config.On {
		controllers = append(controllers, &workloads.Reconciler{
			Names: names, DeadMounts: duties.Workloads == config.On, OnRequest: duties.Remount == config.On, MaxPercent: c.Workloads.MaxPercent,
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Cached: cached, Events: recorder, Clock: clock.RealClock{}, Log: log,
		})
	}
	return setup(mgr, controllers...)
}

// setupFencing registers the controllers of fencing.
func setupFencing(ctx context.Context, mgr manager.Manager, c config.Fencing, log *slog.Logger) error {
	objects, api := mgr.GetClient(), mgr.GetAPIReader()
	if err := fencingreads.IndexFencing(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	watching, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("building the client of the watches for volumes: %w", err)
	}
	unattached, err := fencingreads.Unattached(ctx, api, c.Protects)
	if err != nil {
		return err
	}
	for _, driver := range unattached {
		log.Error("a driver cannot be protected", "driver", driver, "reason", fence.Unattached, "do", fence.UnattachedDo)
	}
	held := fencingreads.NewHoldingsWithVolumes(watching, c.Protects)
	if err := mgr.Add(held); err != nil {
		return fmt.Errorf("adding the watches for volumes: %w", err)
	}
	reader := fencingreads.NewFenceReader(c, objects, api, fencingreads.VersionOfNodes(mgr.GetCache()), held)
	ask := askCeph(c.CephClients, api, held)
	recorder := mgr.GetEventRecorder("fairlead")
	return setup(mgr,
		&fencing.Reconciler{Client: objects, Reader: reader, Held: held, API: api, Ask: ask, Events: recorder, Clock: clock.RealClock{}, Log: log},
		&tainting.Reconciler{
			Tainting: c.Tainting.Rules(), Policy: reader.Policy(), Facts: reader.FenceFacts(clock.RealClock{}, ask),
			Client: objects, Live: api, Events: recorder, Clock: clock.RealClock{}, Log: log,
		},
	)
}

// dutiesByName are the duties that depend on the version of the storage system.
func dutiesByName(d config.Duties) map[string]string {
	return map[string]string{
		longhorn.DutySettings: string(d.Settings), longhorn.DutyPods: string(d.Pods), longhorn.DutyServices: string(d.Services),
		longhorn.DutyEndpoints: string(d.Endpoints), longhorn.DutyWorkloads: string(d.Workloads), longhorn.DutyRemount: string(d.Remount),
	}
}
