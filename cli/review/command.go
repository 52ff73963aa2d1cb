// Package review is `fairlead review`: what admission says to manifests, without applying them. The package asks the
// webhook's own rules, by the webhook configurations of the installation; it decides nothing by itself.
package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/webhook"
)

// Values of --facts.
const (
	factsNone    = "none"
	factsCluster = "cluster"
)

const outputJUnit = "junit"

type options struct {
	cli.ClientOptions
	files     []string
	facts     string
	namespace string
	strict    bool
	recursive bool
}

// Command is `fairlead review`.
func Command() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "review -f FILE|DIRECTORY|-",
		Short: "Tell what Fairlead's admission says to manifests, without applying them",
		Long: `Tell what Fairlead's admission says to manifests, without applying them: refusals,
warnings, and patches as a diff. Output of helm template and kustomize build can be piped
to "fairlead review -f -".

The rules are those of the webhook, asked by the entries of its webhook configurations;
nothing is sent to a webhook, and nothing is written. Manifests are reviewed in their
order, and each one counts as applied for the ones after it, as with kubectl apply.
Claims of a StatefulSet's volumeClaimTemplates are reviewed too, and what is in Longhorn's
ConfigMap longhorn-default-setting and in Fairlead's own ConfigMap.

With --facts none no cluster is read: what is not in the manifests does not exist, and
warnings about the effect of a change are left out. With --facts cluster an existing
object is updated as kubectl apply would. ClusterRoles fairlead-planner and
fairlead-nfs-viewer allow the reads. The rules of fencing are not asked: they judge nodes
and attachments, which no manifest creates.

Exit codes:
  0  nothing is refused
  1  error: a manifest or the cluster could not be read, or a rule could not decide
  3  something is refused, or has warnings with --warnings-as-errors`,
		Example: `  fairlead review -f storage/
  kustomize build clusters/prod | fairlead review -f - -o junit
  fairlead review -f settings.yaml --facts cluster`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.SetupCluster(cmd)
	cmd.PersistentFlags().Lookup("output").Usage = "table, json or junit"
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file, directory or - for standard input; may be given several times")
	flags.BoolVarP(&o.recursive, "recursive", "R", false, "review the subdirectories of directories too")
	flags.StringVar(&o.facts, "facts", factsNone, "none, or cluster to read the cluster of the kubeconfig")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "namespace of manifests that name none; by default the kubeconfig's with --facts cluster, else default")
	flags.BoolVar(&o.strict, "warnings-as-errors", false, "exit with code 3 if there are warnings")
	for name, values := range map[string][]string{"facts": {factsNone, factsCluster}, "output": {cli.OutputTable, cli.OutputJSON, outputJUnit}} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

var (
	errFacts     = errors.New("must be none or cluster")
	errOutput    = errors.New("must be table, json or junit")
	errUndecided = errors.New("some rules could not decide, see above")
)

func (o *options) run(cmd *cobra.Command) error {
	output := o.Output
	switch output {
	case outputJUnit:
		o.Output = cli.OutputJSON // prints no line about the cluster
	case cli.OutputTable, cli.OutputJSON:
	default:
		return fmt.Errorf("--output %q: %w", o.Output, errOutput)
	}
	manifests, err := load(o.files, o.recursive, cmd.InOrStdin())
	if err != nil {
		return err
	}
	r, err := o.reviewer(cmd)
	if err != nil {
		return err
	}
	var all []objectView
	for _, m := range withDefaultSettings(withClaims(manifests)) {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		all = append(all, r.review(cmd.Context(), m))
	}
	view := viewOf(o.facts, all)
	out := cmd.OutOrStdout()
	if o.facts == factsCluster {
		out = o.Out(cmd)
	}
	return show(out, view, output, o.strict)
}

func show(out io.Writer, view reviewView, output string, strict bool) (err error) {
	switch output {
	case cli.OutputJSON:
		err = cli.WriteJSON(out, view)
	case outputJUnit:
		err = writeJUnit(out, view, strict)
	default:
		writeText(out, view)
	}
	switch {
	case err != nil:
		return err
	case view.Summary.Refused > 0, strict && view.Summary.Warned > 0:
		return cli.ExitWrong
	case view.Summary.Undecided > 0:
		return errUndecided
	}
	return nil
}

// reviewer builds the webhook's rules over the facts.
func (o *options) reviewer(cmd *cobra.Command) (*reviewer, error) {
	scheme, err := reads.NewScheme()
	if err != nil {
		return nil, err
	}
	f := &facts{scheme: scheme, applied: map[objectKey]*unstructured.Unstructured{}}
	var c *config.Configuration
	switch o.facts {
	case factsNone:
		f.addBuiltIn()
		c, err = config.Load(o.ConfigFile)
	case factsCluster:
		var live client.Client
		if live, err = o.Connect(); err != nil {
			return nil, err
		}
		f.cluster = live
		o.namespace = cmp.Or(o.namespace, o.ContextNamespace())
		var unread string
		c, unread, err = o.Configuration(cmd.Context(), live)
		cli.NoteDefaults(cmd.ErrOrStderr(), unread)
	default:
		err = fmt.Errorf("--facts %q: %w", o.facts, errFacts)
	}
	if err != nil {
		return nil, err
	}
	return newReviewer(cmd.Context(), c, f, o.facts == factsNone, cmp.Or(o.namespace, metav1.NamespaceDefault))
}

func newReviewer(ctx context.Context, c *config.Configuration, f *facts, offline bool, namespace string) (*reviewer, error) {
	var served *webhook.Longhorn
	if c.Longhorn != nil {
		served = webhook.NewLonghorn(c, reads.NewReader(c.Longhorn.Names(), f, f))
		served.OmitEffect = offline
	}
	reader := &nfsreads.Reader{Objects: f, Drivers: c.NFS.DefaultServices()}
	rules := webhook.Rules(served, nil, &webhook.NFS{Live: reader, Statd: c.NFS.Statd == config.On})
	entries, err := entriesOf(served, reader.Drivers.Names(), rules)
	return &reviewer{entries, f, namespace}, err
}
