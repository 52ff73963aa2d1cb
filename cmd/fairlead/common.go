package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// commonOptions are the flags of every subcommand that runs in a cluster.
type commonOptions struct {
	configFile string
	kubeconfig string
	// context of the kubeconfig; "" is its current one.
	context   string
	logLevel  string
	logFormat string
}

// setup adds the flags, and has the command run with a logger as they say.
func (o *commonOptions) setup(cmd *cobra.Command, run func(context.Context, *slog.Logger) error) {
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, err := o.logger(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return run(cmd.Context(), log)
	}
	flags := cmd.Flags()
	flags.StringVar(&o.configFile, "config", "", "configuration file; without one the defaults hold")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; by default $KUBECONFIG, then the pod's service account")
	flags.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "json", "json or text")
}

var errLogFormat = errors.New("must be json or text")

// logger builds the one logger, and sends there what libraries log.
func (o *commonOptions) logger(out io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	options := &slog.HandlerOptions{Level: level}
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

// restConfig finds the cluster the way kubectl does.
func (o *commonOptions) restConfig(userAgent string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	c.UserAgent = "fairlead-" + userAgent + "/" + version
	// Above what a storm of dead mounts needs; the API server shares itself out by priority and fairness.
	c.QPS, c.Burst = 200, 300
	// The API server warns of the classic Endpoints at every write and watch; once is enough.
	c.WarningHandlerWithContext = log.NewKubeAPIWarningLogger(log.KubeAPIWarningLoggerOptions{Deduplicate: true})
	return c, nil
}

func storageProfiles(c *config.Configuration) []storage.Profile {
	var profiles []storage.Profile
	for _, p := range c.Profiles {
		profiles = append(profiles, p.Storage())
	}
	return profiles
}

var errObjectKey = errors.New("must be <namespace>/<name>")

// objectKey reads <namespace>/<name>; "" is none.
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
