package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	stdlog "log"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fairlead-io/fairlead/certs"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/httpserver"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/internal/settingsapi"
	"github.com/fairlead-io/fairlead/webhook"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

type webhookOptions struct {
	cli.ClusterOptions
	listen, opsListen string
	apiListen         string
	certFile, keyFile string
	selfSignedSecret  string
	servingName       string
	clientCAFile      string
	drainDelay        time.Duration
	pprof             bool
}

func webhookCommand() *cobra.Command {
	o := &webhookOptions{}
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Serve the admission webhooks, and the settings as a REST API",
		Args:  cobra.NoArgs,
	}
	o.Setup(cmd, o.run)
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", ":9443", "address to serve admission on")
	flags.StringVar(&o.apiListen, "api-listen", ":9444", "address to serve the REST API of the settings on; 0 serves none")
	flags.StringVar(&o.opsListen, "ops-listen", ":8080", "address to serve /healthz, /readyz and /metrics on")
	flags.StringVar(&o.certFile, "tls-cert-file", "", "serving certificate, PEM; followed when it is replaced")
	flags.StringVar(&o.keyFile, "tls-key-file", "", "its private key, PEM")
	flags.StringVar(&o.selfSignedSecret, "self-signed-secret", "", "instead of files: <namespace>/<name> of the Secret to keep a CA of Fairlead's own in")
	flags.StringVar(&o.servingName, "serving-name", registration.ServiceName+"."+registration.Namespace+".svc", "name that the API server calls by")
	flags.StringVar(&o.clientCAFile, "client-ca-file", "", "serve only clients with a certificate of these CAs, PEM")
	flags.DurationVar(&o.drainDelay, "drain-delay", 10*time.Second, "how long to go on serving after SIGTERM, until no new connections come")
	flags.BoolVar(&o.pprof, "pprof", false, "serve /debug/pprof beside the metrics")
	return cmd
}

var errCertificate = errors.New("give --tls-cert-file and --tls-key-file, or --self-signed-secret")

func (o *webhookOptions) certificates(c *rest.Config) (certs.Source, error) {
	secret, err := objectKey("self-signed-secret", o.selfSignedSecret)
	if err != nil {
		return nil, err
	}
	files := o.certFile != "" && o.keyFile != ""
	if files == (secret.Name != "") {
		return nil, errCertificate
	}
	if files {
		return certs.FromFiles(o.certFile, o.keyFile), nil
	}
	return certs.SelfSigned(c, certs.Authority{Namespace: secret.Namespace, SecretName: secret.Name}, []string{o.servingName}), nil
}

// run is the composition root of the webhook.
func (o *webhookOptions) run(ctx context.Context, log *slog.Logger) error {
	// Go's HTTP server reports failed handshakes to the standard logger. Anybody can cause them.
	stdlog.SetFlags(0)
	stdlog.SetOutput(slog.NewLogLogger(log.Handler(), slog.LevelDebug).Writer())
	configuration, err := config.Load(o.ConfigFile)
	if err != nil {
		return err
	}
	restConfig, err := o.RestConfig("webhook")
	if err != nil {
		return err
	}
	// The API server protects itself by priority and fairness. The limits are so high that admission never
	// waits for them, as long as it reads few objects one by one (fencing.HolderReader).
	restConfig.QPS, restConfig.Burst = 400, 800
	// Within a cluster, compression takes longer on both sides than sending uncompressed.
	restConfig.DisableCompression = true
	source, err := o.certificates(restConfig)
	if err != nil {
		return err
	}
	scheme, err := reads.NewScheme()
	if err != nil {
		return err
	}
	live, err := client.NewWithWatch(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("building the client: %w", err)
	}
	lists := lists.NewLive(live)
	api, err := apiServer(o.apiListen, configuration, restConfig, live.RESTMapper(), source, scheme, log)
	if err != nil {
		return err
	}

	// Requests are still served while the webhook drains, so their dependencies outlive the serving context.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	registry := prometheus.NewRegistry()
	registry.MustRegister(goCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(), certificateExpiry(source))
	server := &admission.Server{Address: o.listen, Source: source, ClientCAFile: o.clientCAFile, DrainDelay: o.drainDelay, Log: log}
	fencing := webhookFencing(configuration, live, server)
	server.Handler = webhook.NewRouter(webhookLonghorn(configuration, lists), fencing, &webhook.NFS{Live: &nfsreads.Reader{Objects: lists, Drivers: configuration.NFS.DefaultServices()}, Statd: configuration.NFS.Statd == config.On}, admission.NewMetrics(registry), log)
	readiness := &admission.Readiness{
		Source: source, ServingName: o.servingName, Now: time.Now,
		Synced:   func() bool { return fencing == nil || fencing.Live.Held.Synced() },
		Draining: server.Draining,
	}
	group, background := errgroup.WithContext(background)
	group.Go(func() error { return source.Start(background) })
	group.Go(func() error { return serveHTTP(background, o.opsListen, admission.Ops(readiness, registry, o.pprof)) })
	if fencing != nil {
		group.Go(func() error { return fencing.Live.Held.Start(background) })
	}
	if api != nil {
		group.Go(func() error { return api.Start(background) })
	}
	group.Go(func() error {
		defer stop()
		serving, cancel := context.WithCancel(ctx)
		defer cancel()
		context.AfterFunc(background, cancel) // one part failed, so all parts stop
		return server.Start(serving)
	})
	return group.Wait()
}

// webhookLonghorn returns the dependencies of the rules for Longhorn; nil without Longhorn.
func webhookLonghorn(c *config.Configuration, lists *lists.Live) *webhook.Longhorn {
	if c.Longhorn == nil {
		return nil
	}
	return webhook.NewLonghorn(c, reads.NewReader(c.Longhorn.Names(), lists, lists))
}

// webhookFencing returns the dependencies of the fencing gates; nil if fencing is off.
func webhookFencing(c *config.Configuration, live client.WithWatch, server *admission.Server) *webhook.Fencing {
	if !c.Fencing.On() {
		return nil
	}
	return &webhook.Fencing{
		Fencing: c.Fencing, Live: fencingreads.NewHolderReader(live, fencingreads.NewHoldings(live, c.Fencing.Protects)),
		MayOverride: webhook.MayOverrideFence(live), Draining: server.Draining,
	}
}

// apiServer returns the server of the REST API; nil if address is empty, or without Longhorn, which has the settings.
func apiServer(address string, c *config.Configuration, restConfig *rest.Config, mapper meta.RESTMapper, source certs.Source, scheme *runtime.Scheme, log *slog.Logger) (*manager.Server, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	if c.Longhorn == nil {
		log.Info("the API of settings is not served: the configuration has no section longhorn")
		return nil, nil
	}
	tlsConfig := &tls.Config{} // callers authenticate with tokens, not certificates
	admission.ServingTLS(source)(tlsConfig)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for the API: %w", err)
	}
	own := rest.CopyConfig(restConfig)
	own.UserAgent = "fairlead-api/" + cli.Version
	handler := settingsapi.NewRouter(settingsapi.Options{Names: c.Longhorn.Names(), Cluster: own, Mapper: mapper, Scheme: scheme, Log: log})
	return httpserver.New("API", listener, tlsConfig, admission.Recoverer(log)(handler), log), nil
}
