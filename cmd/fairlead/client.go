package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/config"
)

// clientOptions are the flags of the subcommands that people run with their own
// kubeconfig. These only read.
type clientOptions struct {
	commonOptions
	profile, namespace, output string
}

const (
	outputTable = "table"
	outputJSON  = "json"
)

func (o *clientOptions) setup(cmd *cobra.Command) {
	o.setupCluster(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.profile, "profile", "", "profile to look at; by default the first of the configuration")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the storage system; by default as the configuration says")
}

// setupCluster adds the flags of commands that are not about one profile.
func (o *clientOptions) setupCluster(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.configFile, "config", "", "configuration file of Fairlead; by default ConfigMap fairlead in namespace fairlead-system")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; by default $KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig; by default its current context")
	flags.StringVarP(&o.output, "output", "o", outputTable, "table or json")
}

// place is where a command looks.
type place struct {
	config.Profile
	configuration *config.Configuration
	// unread says why configuration is the default one, though Fairlead may run with another.
	unread string
	reader *cluster.Reader
}

// noteDefaults says that the default configuration is used, where Fairlead may use another.
func (p place) noteDefaults(out io.Writer) {
	if p.unread != "" {
		writeLine(out, "The %s.", defaultsUsed(p.unread))
	}
}

func defaultsUsed(unread string) string {
	return "default configuration is used: " + unread + "; pass the file with --config"
}

var (
	errOutput    = errors.New("must be table or json")
	errProfile   = errors.New("is not in the configuration")
	errNoProfile = errors.New("the configuration has no profile with settings")
)

// connect checks the flags and returns a client of the cluster.
func (o *clientOptions) connect() (client.Client, error) {
	ctrl.SetLogger(logr.Discard())
	if o.output != outputTable && o.output != outputJSON {
		return nil, fmt.Errorf("--output %q: %w", o.output, errOutput)
	}
	restConfig, err := o.restConfig("cli")
	if err != nil {
		return nil, err
	}
	restConfig.Timeout = time.Minute
	scheme, err := cluster.NewScheme()
	if err != nil {
		return nil, err
	}
	live, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	return live, nil
}

func (o *clientOptions) open(ctx context.Context) (place, error) {
	live, err := o.connect()
	if err != nil {
		return place{}, err
	}
	c, unread, err := o.configuration(ctx, live)
	if err != nil {
		return place{}, err
	}
	p, err := o.pick(c, unread)
	if err != nil {
		return place{}, err
	}
	return place{p, c, unread, cluster.NewReader(p.Storage(), live, live)}, nil
}

func (o *clientOptions) pick(c *config.Configuration, unread string) (config.Profile, error) {
	if len(c.Profiles) == 0 {
		return config.Profile{}, errNoProfile
	}
	i := 0
	if o.profile != "" {
		i = slices.IndexFunc(c.Profiles, func(p config.Profile) bool { return p.Name == o.profile })
	}
	if i < 0 {
		var names []string
		for _, p := range c.Profiles {
			names = append(names, p.Name)
		}
		err := fmt.Errorf("--profile %q %w: it has %s", o.profile, errProfile, strings.Join(names, ", "))
		if unread != "" {
			err = fmt.Errorf("%w; the %s", err, defaultsUsed(unread))
		}
		return config.Profile{}, err
	}
	p := c.Profiles[i]
	if o.namespace != "" {
		p.Namespace = o.namespace
	}
	return p, nil
}

// forbidden is how the API server words what RBAC does not allow.
var forbidden = regexp.MustCompile(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// explain says which right is missing, where that is the matter.
func explain(err error) error {
	return explainBy(err, "ClusterRole fairlead-planner (plan) or fairlead-settings-viewer (settings)")
}

// explainBy names the roles that have the right.
func explainBy(err error, roles string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	missing := forbidden.FindStringSubmatch(err.Error())
	if missing == nil {
		return err
	}
	what := missing[2]
	if missing[3] != "" {
		what += "." + missing[3]
	}
	where := "in the whole cluster"
	if missing[4] != "" {
		where = "in namespace " + missing[4]
	}
	return fmt.Errorf("you may not %s %s %s; %s allows it: %w", missing[1], what, where, roles, err)
}
