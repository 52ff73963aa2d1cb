// Package plan is `fairlead plan`: the command shows the effect of settings on a cluster.
package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/validators"
)

type planOptions struct {
	cli.ClientOptions
	set, unset []string
}

func Command() *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Tell what settings would do to this cluster now, and what would wait; change nothing",
		Long: `Tell what settings would do to this cluster now, and what would wait; change nothing.

The cluster is read live. Without --set and --unset the plan is for the values in
effect, else for what they would be, in the order of their names. Each value is set
where the setting has its home: in settings.longhorn.io where Longhorn has the
setting, else in settings.fairlead.io. Each change is judged by the rules of
Fairlead's webhook; what that refuses is not planned. No webhook is asked: another
one, such as the storage system's, may still refuse.

Exit codes:
  0  all that was asked about would be applied now, or there is nothing to do
  1  error: the cluster could not be read, a name, a value or a change is refused, or
     a value in effect that was asked about is invalid; see standard error
  2  something that was asked about would wait; the plan says for what`,
		Example: `  fairlead plan --set priority-class=longhorn-critical
  fairlead plan --set storage-network=kube-system/storage-net --set storage-network-for-rwx-volume-enabled=true
  fairlead plan --unset endpoint-network-for-rwx-volume -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changes, err := parseChanges(o.set, o.unset)
			if err != nil {
				return err
			}
			p, err := o.Open(cmd)
			if err != nil {
				return err
			}
			view, err := Read(cmd.Context(), p, changes, time.Now())
			if err != nil {
				return cli.Explain(err)
			}
			// A plan is for a Fairlead that works, and runs the configuration in the cluster.
			installation.Warn(cmd.Context(), cmd.ErrOrStderr(), p.Live, time.Now())
			return show(o.Out(cmd), view, o.Output)
		},
	}
	o.Setup(cmd)
	// Arrays, since values may have commas.
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "name=value to plan for; may be given several times")
	cmd.Flags().StringArrayVar(&o.unset, "unset", nil, "name of a setting whose value in settings.fairlead.io is taken away; may be given several times")
	return cmd
}

// Read reads the cluster, judges the changes and makes the plan.
func Read(ctx context.Context, p cli.Target, c Changes, now time.Time) (View, error) {
	facts, err := p.Reader.Facts(ctx, reads.FactsOptions{Now: now, Policy: p.Longhorn.Policy(), VolumeNetworks: p.Longhorn.Duties.ServesVolumeNetworks()})
	if err != nil {
		return View{}, err
	}
	facts.Rollout.Runs = p.Reader.NodesOfWorkloads(ctx, facts.Rollout.Volumes)
	if p.Longhorn.Duties.Settings == config.Off {
		return viewOf(facts, c), nil // without changes, the webhook has nothing to judge
	}
	return c.planned(validators.SettingFacts{
		Facts: facts, Applies: p.Longhorn.Duties.Settings == config.Apply,
		MissingPolicy: p.Longhorn.Networks.Missing,
		Defaults:      p.Reader.DefaultSettings(ctx),
	})
}

// planned judges the changes and makes the plan.
func (c Changes) planned(facts validators.SettingFacts) (View, error) {
	warnings, err := judge(facts, c)
	if err != nil {
		return View{}, err
	}
	view := viewOf(facts.Facts, c)
	for i, s := range view.Settings {
		view.Settings[i].Warnings = append(s.Warnings, warnings[catalog.Name(s.Name)]...)
	}
	return view, nil
}

func show(out io.Writer, view View, output string) error {
	if !cli.IsDocument(output) {
		writePlan(out, view)
	} else if err := cli.WriteDocument(out, output, view); err != nil {
		return err
	}
	switch view.Outcome {
	case outcomeInvalid:
		return view.invalid()
	case outcomeWaits:
		return cli.ExitWaits
	}
	return nil
}

var errInvalid = errors.New("is invalid")

// invalid names the malformed values, which are not applied.
func (v View) invalid() error {
	var all []error
	for _, s := range v.Asked() {
		if s.Applies == appliesInvalid {
			all = append(all, fmt.Errorf("%s %w: %s", s.Name, errInvalid, s.Reason))
		}
	}
	return errors.Join(all...)
}
