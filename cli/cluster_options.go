package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// ClusterOptions are the flags of every subcommand that runs in a cluster.
type ClusterOptions struct {
	ConfigFile string
	kubeconfig string
	// context of the kubeconfig; "" is its current one.
	context string
	// user and groups to act as; empty is the kubeconfig's own user.
	user   string
	groups []string

	logLevel  string
	logFormat string
}

// Setup adds the flags, and makes the command call run with the logger of the flags.
func (o *ClusterOptions) Setup(cmd *cobra.Command, run func(context.Context, *slog.Logger) error) {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, err := o.logger(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		log.Info("starting", "command", cmd.Name(), "version", Version, "go", runtime.Version())
		return run(cmd.Context(), log)
	}
	flags := cmd.Flags()
	flags.StringVar(&o.ConfigFile, "config", "", "configuration file; without one the defaults hold")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; by default $KUBECONFIG, then the pod's service account")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or text")
}

var errLogFormat = errors.New("must be json or text")

// logger builds the logger, also for libraries.
func (o *ClusterOptions) logger(out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: sourceText}
	var handler slog.Handler
	switch o.logFormat {
	case "json":
		handler = slog.NewJSONHandler(out, options)
	case "text":
		handler = slog.NewTextHandler(out, options)
	default:
		return nil, fmt.Errorf("--log-format %q: %w", o.logFormat, errLogFormat)
	}
	ctrl.SetLogger(logr.FromSlogHandler(handler))
	klog.SetLogger(logr.FromSlogHandler(handler))
	return slog.New(handler), nil
}

// sourceText is for controller-runtime, which logs each source of events: some have functions in them, which are no JSON.
func sourceText(_ []string, a slog.Attr) slog.Attr {
	if a.Key != "source" || a.Value.Kind() != slog.KindAny {
		return a
	}
	if s, ok := a.Value.Any().(fmt.Stringer); ok {
		return slog.String(a.Key, s.String())
	}
	return slog.String(a.Key, fmt.Sprintf("%T", a.Value.Any()))
}

func (o *ClusterOptions) kubeconfigLoader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: o.context, AuthInfo: clientcmdapi.AuthInfo{Impersonate: o.user, ImpersonateGroups: o.groups},
	})
}

// ClusterName describes the connected cluster: the kubeconfig's context and the API server's address.
// It is valid after Connect.
func (o *ClusterOptions) ClusterName() string {
	loader := o.kubeconfigLoader()
	c, err := loader.ClientConfig()
	if err != nil {
		return ""
	}
	name := o.context
	if raw, err := loader.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	if name == "" {
		return c.Host
	}
	return name + " (" + c.Host + ")"
}

// ContextNamespace is the namespace of the kubeconfig's context, as kubectl uses it; empty if there is none.
func (o *ClusterOptions) ContextNamespace() string {
	namespace, _, err := o.kubeconfigLoader().Namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// RestConfig finds the cluster the way kubectl does.
func (o *ClusterOptions) RestConfig(userAgent string) (*rest.Config, error) {
	c, err := o.kubeconfigLoader().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("there is no kubeconfig in %s: name the file by --kubeconfig or KUBECONFIG", strings.Join(clientcmd.NewDefaultClientConfigLoadingRules().GetLoadingPrecedence(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	c.UserAgent = "fairlead-" + userAgent + "/" + Version
	// Enough for a storm of dead mounts; priority and fairness protects the API server.
	c.QPS, c.Burst = 200, 300
	// The API server warns of Endpoints at every write and watch.
	c.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	return c, nil
}

// The ConfigMap of the manifests (manifests/base/kustomization.yaml).
const (
	ConfigurationMap = "fairlead"
	ConfigurationKey = "configuration.yaml"
)

// Configuration reads the file of --config, else the ConfigMap in the cluster, else the defaults;
// then unread says why the ConfigMap could not be used.
func (o *ClientOptions) Configuration(ctx context.Context, objects client.Reader) (c *config.Configuration, unread string, err error) {
	o.unsure = false
	if o.ConfigFile != "" {
		c, err = config.Load(o.ConfigFile)
		return c, "", err
	}
	var m corev1.ConfigMap
	where := fmt.Sprintf("ConfigMap %s/%s", registration.Namespace, ConfigurationMap)
	err = objects.Get(ctx, client.ObjectKey{Namespace: registration.Namespace, Name: ConfigurationMap}, &m)
	switch {
	case apierrors.IsForbidden(err):
		unread = "you may not get " + where + ", which ClusterRoles fairlead-planner, fairlead-settings-viewer, fairlead-fence-viewer and fairlead-nfs-viewer allow there"
	case apierrors.IsNotFound(err):
		unread = "there is no " + where
	case err != nil:
		return nil, "", fmt.Errorf("reading %s: %w", where, err)
	default:
		if c, err = config.Parse([]byte(m.Data[ConfigurationKey])); err == nil {
			return c, "", nil
		}
		unread = fmt.Sprintf("%s of %s: %v", ConfigurationKey, where, err)
	}
	o.unsure = !apierrors.IsNotFound(err)
	c, err = config.Load("")
	return c, unread, err
}
