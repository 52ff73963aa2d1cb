package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// controller is registered with a manager.
type controller interface{ SetupWithManager(ctrl.Manager) error }

func setup(mgr manager.Manager, controllers ...controller) error {
	for _, c := range controllers {
		if err := c.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

// managerOptions are the flags of commands that run controllers.
type managerOptions struct {
	metricsListen, healthListen string
	leaderElect                 bool
	leaderElectionNamespace     string
	pprofListen                 string
}

func (o *managerOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.metricsListen, "metrics-listen", ":8080", "address to serve /metrics on; 0 serves none")
	flags.StringVar(&o.healthListen, "health-listen", ":8081", "address to serve /healthz and /readyz on; 0 serves none")
	flags.BoolVar(&o.leaderElect, "leader-elect", true, "work only as the leader of all replicas")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", registration.Namespace, "namespace of the leader's Lease")
	flags.StringVar(&o.pprofListen, "pprof-listen", "", "address to serve /debug/pprof on; none by default")
}

// manager builds the manager of controllers. lease names the leader's Lease.
func (o *managerOptions) manager(c *rest.Config, scheme *runtime.Scheme, caches cache.Options, newCache cache.NewCacheFunc, lease string) (manager.Manager, error) {
	refusals := &kit.RefusalReporter{}
	mgr, err := ctrl.NewManager(c, manager.Options{
		Scheme: scheme, Cache: caches, NewCache: newCache,
		NewClient: func(c *rest.Config, o client.Options) (_ client.Client, err error) {
			o.Cache.Unstructured = true // NetworkAttachmentDefinitions
			refusals.Client, err = client.New(c, o)
			return refusals, err
		},
		Metrics:                 metricsserver.Options{BindAddress: o.metricsListen},
		HealthProbeBindAddress:  o.healthListen,
		PprofBindAddress:        o.pprofListen,
		LeaderElection:          o.leaderElect,
		LeaderElectionID:        lease,
		LeaderElectionNamespace: o.leaderElectionNamespace,
		// The manager stops all controllers before it releases the lease, and the process ends then.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		LeaseDuration:                 ptr.To(leaseDuration), RenewDeadline: ptr.To(renewDeadline), RetryPeriod: ptr.To(leaseRetry),
	})
	if err != nil {
		return nil, fmt.Errorf("building the manager: %w", err)
	}
	refusals.Events = mgr.GetEventRecorder("fairlead")
	if err := ctrlmetrics.Registry.Register(buildInfo()); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return nil, fmt.Errorf("registering the version: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("adding a health check: %w", err)
		}
	}
	return mgr, nil
}

var errObjectKey = errors.New("must be <namespace>/<name>")

// objectKey parses <namespace>/<name>; "" is no object.
func objectKey(flag, value string) (client.ObjectKey, error) {
	if value == "" {
		return client.ObjectKey{}, nil
	}
	namespace, name, found := strings.Cut(value, "/")
	if !found || namespace == "" || name == "" {
		return client.ObjectKey{}, fmt.Errorf("--%s %q: %w", flag, value, errObjectKey)
	}
	return client.ObjectKey{Namespace: namespace, Name: name}, nil
}

// serveHTTP serves until the context ends; an empty address or 0 serves nothing.
func serveHTTP(ctx context.Context, listen string, handler http.Handler) error {
	if listen == "0" || listen == "" {
		return nil
	}
	s := manager.Server{
		Server:          &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second},
		ShutdownTimeout: ptr.To(time.Second),
	}
	if err := s.Start(ctx); err != nil {
		return fmt.Errorf("serving on %s: %w", listen, err)
	}
	return nil
}

// goCollector reports Go's own metrics, with the live heap: the memory in use after the last collection.
func goCollector() prometheus.Collector {
	return collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile(`^/gc/heap/live:bytes$`)}))
}
