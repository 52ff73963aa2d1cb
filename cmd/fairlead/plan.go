package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/validators"
)

type planOptions struct {
	clientOptions
	set, unset []string
}

func planCommand() *cobra.Command {
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
			p, err := o.open(cmd.Context())
			if err != nil {
				return err
			}
			p.noteDefaults(cmd.ErrOrStderr())
			view, err := p.plan(cmd.Context(), changes, time.Now())
			if err != nil {
				return explain(err)
			}
			return show(cmd.OutOrStdout(), view, o.output)
		},
	}
	o.setup(cmd)
	// Arrays, since values may have commas.
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "name=value to plan for; may be given several times")
	cmd.Flags().StringArrayVar(&o.unset, "unset", nil, "name of a setting whose value in settings.fairlead.io is taken away; may be given several times")
	return cmd
}

// plan reads the cluster, judges the changes and makes the plan.
func (p place) plan(ctx context.Context, c changes, now time.Time) (planView, error) {
	o := cluster.FactsOptions{Now: now, Policy: p.configuration.Policy(), VolumeNetworks: p.Duties.ServesVolumeNetworks()}
	facts, err := p.reader.Facts(ctx, o)
	if err != nil {
		return planView{}, err
	}
	then := c.after(facts)
	if plan.Make(then).AsksForNetworks {
		if err := p.reader.AddNetworks(ctx, &facts); err != nil {
			return planView{}, err
		}
	}
	if err := p.completeRollout(ctx, &facts, then.Values, o); err != nil {
		return planView{}, err
	}
	if p.Duties.Settings == config.Off {
		return viewOf(facts, c), nil // the webhook judges nothing
	}
	return c.planned(p.judgedBy(ctx, facts, c))
}

// judgedBy adds what the webhook knows beside the facts of a plan.
func (p place) judgedBy(ctx context.Context, facts plan.Facts, c changes) validators.SettingFacts {
	judged := validators.SettingFacts{
		Facts: facts, Applies: p.Duties.Settings == config.Apply,
		MissingPolicy: validators.Strictness(p.configuration.Networks.Missing),
	}
	judged.PriorityClasses = slices.Sorted(maps.Keys(facts.Existing.Classes))
	if len(c) == 0 {
		return judged // nothing to judge: networks need not be allowed to be read
	}
	// As in the webhook: a cluster without Multus has no such kind.
	var err error
	judged.Networks, err = p.reader.Networks(ctx)
	judged.NetworksKnown = err == nil
	return judged
}

// planned is all of the command between reading and showing.
func (c changes) planned(facts validators.SettingFacts) (planView, error) {
	warnings, err := judge(facts, c)
	if err != nil {
		return planView{}, err
	}
	view := viewOf(facts.Facts, c)
	for i, s := range view.Settings {
		view.Settings[i].Warnings = append(s.Warnings, warnings[catalog.Name(s.Name)]...)
	}
	return view, nil
}

// completeRollout gathers what is left out where a value in force is malformed,
// and a change puts that right.
func (p place) completeRollout(ctx context.Context, facts *plan.Facts, then catalog.Values, o cluster.FactsOptions) error {
	if _, err := catalog.SharedVolumeNetwork(facts.Values, p.Storage()); err == nil {
		return nil
	}
	if _, err := catalog.SharedVolumeNetwork(then, p.Storage()); err != nil {
		return nil // the plan says so
	}
	record, err := p.reader.Record(ctx)
	if err != nil && !errors.Is(err, cluster.ErrNotRecorded) {
		return err
	}
	if facts.Rollout, err = p.reader.Rollout(ctx, then, record, o.Now); err != nil {
		return err
	}
	facts.Rollout.Policy = o.Policy
	if o.VolumeNetworks {
		return p.reader.AddRequests(ctx, &facts.Rollout)
	}
	return nil
}

func show(out io.Writer, view planView, output string) error {
	write := writePlan
	if output == outputJSON {
		write = func(out io.Writer, view planView) error { return writeJSON(out, view) }
	}
	if err := write(out, view); err != nil {
		return fmt.Errorf("showing the plan: %w", err)
	}
	switch view.Outcome {
	case outcomeInvalid:
		return view.invalid()
	case outcomeWaits:
		return exitWaits
	}
	return nil
}

var errInvalid = errors.New("is invalid")

// invalid says which values must be corrected before anything of them is applied.
func (v planView) invalid() error {
	var all []error
	for _, s := range v.asked() {
		if s.Applies == appliesInvalid {
			all = append(all, fmt.Errorf("%s %w: %s", s.Name, errInvalid, s.Reason))
		}
	}
	return errors.Join(all...)
}
