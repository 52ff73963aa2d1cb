//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/fairlead-io/fairlead/cli"
	fairleadcsi "github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/csi/conntrack"
	"github.com/fairlead-io/fairlead/internal/csi/identity"
	"github.com/fairlead-io/fairlead/internal/csi/mounts"
	"github.com/fairlead-io/fairlead/internal/csi/node"
	"github.com/fairlead-io/fairlead/internal/csi/registration"
	"github.com/fairlead-io/fairlead/internal/csi/server"
)

// driverVariable is the placeholder for the driver's name in --csi-endpoint.
const driverVariable = "{driver}"

type csiNodeOptions struct {
	cli.ClusterOptions
	drivers                     []string
	nodeName                    string
	endpoint                    string
	kubeletDir, registrationDir string
	metricsListen, healthListen string
	conntrack                   bool
	mountTimeout                time.Duration
}

func csiNodeCommand() *cobra.Command {
	o := &csiNodeOptions{}
	cmd := &cobra.Command{
		Use:   "csi-node",
		Short: "Mount the shares of NFS services on this node, for its kubelet",
		Args:  cobra.NoArgs,
	}
	o.Setup(cmd, o.run)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.drivers, "driver-name", []string{fairleadcsi.DefaultDriver}, "name of a CSI driver to serve; may be repeated")
	flags.StringVar(&o.nodeName, "node-name", os.Getenv("NODE_NAME"), "name of this node; by default $NODE_NAME")
	flags.StringVar(&o.kubeletDir, "kubelet-dir", "/var/lib/kubelet", "the kubelet's --root-dir; targets must be below it")
	flags.StringVar(&o.endpoint, "csi-endpoint", "", "socket of the driver; "+driverVariable+" stands for its name (default unix://<kubelet-dir>/plugins/"+driverVariable+"/csi.sock)")
	flags.StringVar(&o.registrationDir, "registration-dir", "", "directory in which the kubelet looks for drivers (default <kubelet-dir>/plugins_registry)")
	flags.StringVar(&o.metricsListen, "metrics-listen", "0", "address to serve /metrics on; 0 serves none. The node's network namespace is shared by all")
	flags.StringVar(&o.healthListen, "health-listen", "0", "address to serve /healthz and /readyz on; 0 serves none")
	flags.BoolVar(&o.conntrack, "conntrack", true, "delete connections to servers that the address of an NFS service has left")
	flags.DurationVar(&o.mountTimeout, "mount-timeout", node.DefaultTimeouts.Mount, "how long mount(8) may take; the kubelet waits two minutes")
	return cmd
}

// run is the composition root of the node plugin.
func (o *csiNodeOptions) run(ctx context.Context, log *slog.Logger) error {
	if o.nodeName == "" {
		return errors.New("the name of this node is missing: set --node-name, or NODE_NAME from spec.nodeName")
	}
	sockets, err := o.sockets()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(goCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())
	calls, err := server.NewMetrics(registry)
	if err != nil {
		return err
	}
	serving := server.Options{Log: log, Metrics: calls}
	cluster, err := o.RestConfig("csi-node")
	if err != nil {
		log.Warn("No cluster is reachable: connections to servers that an address has left are not deleted", "error", err)
	}

	group, ctx := errgroup.WithContext(ctx)
	system := &mounts.Host{}
	var registrations []*registration.Registration
	for i, driver := range o.drivers {
		identities := &identity.Server{Driver: driver, Version: cli.Version}
		nodes := &node.Server{
			Driver: driver, NodeName: o.nodeName, System: system, Timeouts: node.DefaultTimeouts,
			KubeletDir: o.kubeletDir, PageSize: os.Getpagesize(), Log: log.With("driver", driver),
		}
		nodes.Timeouts.Mount = o.mountTimeout
		r := registration.New(driver, sockets[i], o.registrationDir, log)
		registrations = append(registrations, r)
		listening := make(chan struct{})
		group.Go(func() error {
			return server.Serve(ctx, sockets[i], serving, func() { close(listening) }, identities.Register, nodes.Register)
		})
		group.Go(func() error {
			select {
			case <-listening: // the kubelet calls the driver as soon as the driver is registered
				return r.Run(ctx, serving)
			case <-ctx.Done():
				return nil
			}
		})
	}
	if o.conntrack && cluster != nil {
		group.Go(func() error { return o.cleanConnections(ctx, cluster, registry, log) })
	}
	metrics := http.NewServeMux()
	metrics.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	group.Go(func() error { return serveHTTP(ctx, o.metricsListen, metrics) })
	group.Go(func() error { return serveHTTP(ctx, o.healthListen, healthHandler(registrations)) })
	return group.Wait()
}

// sockets returns the paths of the drivers' sockets. It sets defaults that depend on the kubelet's directory.
func (o *csiNodeOptions) sockets() ([]string, error) {
	if !filepath.IsAbs(o.kubeletDir) {
		return nil, fmt.Errorf("--kubelet-dir %q is not absolute", o.kubeletDir)
	}
	if o.endpoint == "" {
		o.endpoint = "unix://" + filepath.Join(o.kubeletDir, "plugins", driverVariable, "csi.sock")
	}
	if o.registrationDir == "" {
		o.registrationDir = filepath.Join(o.kubeletDir, "plugins_registry")
	}
	var sockets []string
	seen := map[string]bool{}
	for _, driver := range o.drivers {
		if err := registration.CheckDriver(driver); err != nil {
			return nil, fmt.Errorf("--driver-name: %w", err)
		}
		path, err := server.ParseEndpoint(strings.ReplaceAll(o.endpoint, driverVariable, driver))
		if err != nil {
			return nil, fmt.Errorf("--csi-endpoint: %w", err)
		}
		if seen[path] {
			return nil, fmt.Errorf("two drivers would share the socket %s: write %s into --csi-endpoint, and each --driver-name once", path, driverVariable)
		}
		seen[path] = true
		sockets = append(sockets, path)
	}
	if len(sockets) == 0 {
		return nil, errors.New("--driver-name names no driver")
	}
	return sockets, nil
}

// cleanConnections deletes stale connections. Its errors do not end the node plugin: mounts matter more.
func (o *csiNodeOptions) cleanConnections(ctx context.Context, cluster *rest.Config, registry prometheus.Registerer, log *slog.Logger) error {
	metrics, err := conntrack.NewMetrics(registry)
	if err != nil {
		return err
	}
	err = conntrack.Watch(ctx, cluster, &conntrack.Cleaner{Table: conntrack.Kernel{}, Log: log, Metrics: metrics})
	if err != nil && ctx.Err() == nil {
		log.Error("Connections to servers that an address has left are not deleted", "error", err)
	}
	return nil
}

// probeTimeout is how long a driver's socket may take to answer. The liveness probe waits one second longer.
const probeTimeout = 4 * time.Second

// healthHandler answers /healthz and /readyz. Healthy means that each driver answers on its socket, and the kubelet finds its
// registration: a process whose sockets were removed is restarted. Ready means that the kubelet has registered all drivers.
func healthHandler(registrations []*registration.Registration) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		for _, driver := range registrations {
			err := server.Probe(ctx, driver.Endpoint)
			if err == nil {
				_, err = os.Lstat(driver.Socket)
			}
			if err != nil {
				http.Error(w, fmt.Sprintf("driver %s: %v", driver.Driver, err), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if i := slices.IndexFunc(registrations, func(r *registration.Registration) bool { return !r.Registered() }); i >= 0 {
			http.Error(w, "the kubelet has not registered the driver "+registrations[i].Driver, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
