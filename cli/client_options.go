package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/reads"
)

// ClientOptions are the flags of the read-only subcommands that people run with their own kubeconfig.
type ClientOptions struct {
	ClusterOptions
	namespace, Output string
	// unsure: there may be a configuration that could not be read.
	unsure bool
}

// Setup adds the flags.
func (o *ClientOptions) Setup(cmd *cobra.Command) {
	o.SetupCluster(cmd)
	flags := cmd.PersistentFlags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of Longhorn; by default as the configuration says")
}

// SetupCluster adds the flags of commands that do not read Longhorn.
func (o *ClientOptions) SetupCluster(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.ConfigFile, "config", "", "configuration file of Fairlead; by default ConfigMap fairlead in namespace fairlead-system")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; by default $KUBECONFIG, then ~/.kube/config")
	flags.StringVar(&o.context, "context", "", "context of the kubeconfig; by default its current context")
	flags.StringVar(&o.user, "as", "", "user to act as, as in kubectl")
	flags.StringArrayVar(&o.groups, "as-group", nil, "group to act as, as in kubectl; may be given several times")
	flags.StringVarP(&o.Output, "output", "o", OutputTable, "table, wide (nothing is wrapped or left out), json or yaml")
}

// Out is where a command prints for people. The first line names the cluster, so that clusters are not
// mistaken for each other; a command that fails before it prints anything prints no such line. JSON and YAML have no such line.
func (o *ClientOptions) Out(cmd *cobra.Command) io.Writer {
	if IsDocument(o.Output) {
		return cmd.OutOrStdout()
	}
	return &headed{laid: o.Page(cmd).Layout, out: cmd.OutOrStdout(), head: func() string { return "Cluster " + cmp.Or(o.ClusterName(), "(no name)") }}
}

// Page is an empty page with the layout of the command's output.
func (o *ClientOptions) Page(cmd *cobra.Command) *Page {
	layout := LayoutOf(cmd.OutOrStdout())
	if o.Output == OutputWide {
		layout.Columns, layout.Whole = 0, true
	}
	return &Page{Layout: layout}
}

// headed writes a head before the first byte.
type headed struct {
	laid Layout
	out  io.Writer
	head func() string
}

func (h *headed) layout() Layout { return h.laid }

func (h *headed) Write(text []byte) (int, error) {
	if h.head != nil && len(text) > 0 {
		WriteLine(h.out, "%s", h.head())
		h.head = nil
	}
	return h.out.Write(text)
}

// Target is the cluster that a command reads.
type Target struct {
	Configuration *config.Configuration
	// Longhorn is the section of the configuration, in the namespace of --namespace, and Reader reads Longhorn's objects.
	// Both are nil if Fairlead does nothing for Longhorn.
	Longhorn *config.Longhorn
	Reader   *reads.Reader
	// Live reads the cluster.
	Live client.Client
	// Unsure: the cluster may have another configuration than the default one, which is used since it could not be read.
	Unsure bool
}

// NoteDefaults tells the user that the default configuration is used, and why; nothing if the configuration was read.
func NoteDefaults(out io.Writer, unread string) {
	if unread != "" {
		WriteLine(out, "%s", Defaults(unread))
	}
}

// Defaults says that the default configuration is used, and why; "" if the configuration was read.
func Defaults(unread string) string {
	if unread == "" {
		return ""
	}
	return "The " + defaultsUsed(unread) + "."
}

func defaultsUsed(unread string) string {
	return "default configuration is used: " + unread + "; pass the file with --config"
}

var (
	errOutput    = errors.New("must be table, wide, json or yaml")
	errNoStorage = errors.New("has no settings of Longhorn")
)

// ErrNoLonghorn is the error of commands about settings if Fairlead does nothing for Longhorn.
var ErrNoLonghorn = errors.New("the configuration has no section longhorn, and only Longhorn has settings")

// Connect checks the flags and returns a client of the cluster.
func (o *ClientOptions) Connect() (client.Client, error) { return o.connect(time.Minute) }

// connect is Connect with the time that one request may take.
func (o *ClientOptions) connect(timeout time.Duration) (client.Client, error) {
	ctrl.SetLogger(logr.Discard())
	if !slices.Contains([]string{OutputTable, OutputWide, OutputJSON, OutputYAML}, o.Output) {
		return nil, fmt.Errorf("--output %q: %w", o.Output, errOutput)
	}
	restConfig, err := o.RestConfig("cli")
	if err != nil {
		return nil, err
	}
	restConfig.Timeout = timeout
	scheme, err := reads.NewScheme()
	if err != nil {
		return nil, err
	}
	live, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("building the client: %w", err)
	}
	return live, nil
}

// Open reads the configuration, which must have the section longhorn.
func (o *ClientOptions) Open(cmd *cobra.Command) (Target, error) {
	t, _, err := o.OpenAll(cmd)
	if err == nil && t.Longhorn == nil {
		err = ErrNoLonghorn
	}
	return t, err
}

// OpenAll is OpenAny, and refuses a namespace without Longhorn.
func (o *ClientOptions) OpenAll(cmd *cobra.Command) (t Target, unread string, err error) {
	if t, unread, err = o.OpenAny(cmd); err == nil {
		err = o.checkNamespace(cmd.Context(), t)
	}
	return t, unread, err
}

// OpenAny reads the configuration. It also says why the configuration is the default one.
func (o *ClientOptions) OpenAny(cmd *cobra.Command) (t Target, unread string, err error) {
	live, err := o.Connect()
	if err != nil {
		return t, "", err
	}
	c, unread, err := o.Configuration(cmd.Context(), live)
	if err != nil {
		return t, "", err
	}
	NoteDefaults(cmd.ErrOrStderr(), unread)
	return o.target(c, live), unread, nil
}

func (o *ClientOptions) target(c *config.Configuration, live client.Client) Target {
	t := Target{Configuration: c, Live: live, Unsure: o.unsure}
	if c.Longhorn != nil {
		l := *c.Longhorn
		l.Namespace = cmp.Or(o.namespace, l.Namespace)
		t.Longhorn, t.Reader = &l, reads.NewReader(l.Names(), live, live)
	}
	return t
}

// checkNamespace refuses the namespace of --namespace if Longhorn has no settings there: a habit of kubectl would show defaults
// as settings in effect.
func (o *ClientOptions) checkNamespace(ctx context.Context, t Target) error {
	if o.namespace == "" || t.Longhorn == nil {
		return nil
	}
	_, values, err := t.Reader.Values(ctx)
	if err != nil || len(values) > 0 {
		return nil //nolint:nilerr // what the command reads next fails too, with the right that is missing
	}
	return fmt.Errorf("--namespace %q: %w", o.namespace, errNoStorage)
}

// forbidden matches the API server's message on a missing right.
var forbidden = regexp.MustCompile(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)")?`)

// Explain says which right is missing if the API server forbids a request.
func Explain(err error) error {
	return ExplainBy(err, "ClusterRole fairlead-planner (plan) or fairlead-settings-viewer (settings)")
}

// ExplainBy says which right is missing and which roles have the right.
func ExplainBy(err error, roles string) error {
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
