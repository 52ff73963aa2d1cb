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

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/settings"
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
  1  error: the cluster could not be read, or a name, a value or a change is refused; see standard error
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
			view, err := p.plan(cmd.Context(), request{changes}, time.Now())
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

// request is what a plan is asked for.
type request struct{ changes }

// own tells whether a setting is changed in Fairlead's own group.
func (q request) own(name settings.Name, f settings.Facts) bool {
	_, inOwn := f.OwnValues[name]
	_, inSystem := f.SystemValues[name]
	return !inSystem || inOwn && q.changes[name] == nil
}

// to are the values of both groups after the changes.
func (q request) to(f settings.Facts) (own, system map[settings.Name]string) {
	inOwn, inSystem := changes{}, changes{}
	for name, value := range q.changes {
		if q.own(name, f) {
			inOwn[name] = value
		} else {
			inSystem[name] = value
		}
	}
	return inOwn.applied(f.OwnValues), inSystem.applied(f.SystemValues)
}

// plan reads the cluster, judges the changes and makes the plan.
func (p place) plan(ctx context.Context, q request, now time.Time) (planView, error) {
	o := cluster.FactsOptions{Now: now, Policy: p.configuration.Policy(), VolumeNetworks: p.Duties.ServesVolumeNetworks()}
	facts, err := p.reader.Facts(ctx, o)
	if err != nil {
		return planView{}, err
	}
	then := q.then(facts)
	asked := facts.With(then)
	asked.OwnValues, asked.SystemValues = q.to(facts)
	if settings.Make(asked).AsksForNetworks {
		if err := p.reader.AddNetworks(ctx, &facts); err != nil {
			return planView{}, err
		}
	}
	if err := p.completeRollout(ctx, &facts, then, o); err != nil {
		return planView{}, err
	}
	if p.Duties.Settings == config.Off {
		return q.view(facts), nil // the webhook judges nothing
	}
	return q.planned(p.judgedBy(ctx, facts, q))
}

// judgedBy adds what the webhook knows beside the facts of a plan.
func (p place) judgedBy(ctx context.Context, facts settings.Facts, q request) validators.SettingFacts {
	judged := validators.SettingFacts{
		Facts: facts, Applies: p.Duties.Settings == config.Apply,
		MissingPolicy: validators.Strictness(p.configuration.Networks.Missing),
	}
	judged.PriorityClasses = slices.Sorted(maps.Keys(facts.Existing.Classes))
	if len(q.changes) == 0 {
		return judged // nothing to judge: networks need not be allowed to be read
	}
	// As in the webhook: a cluster without Multus has no such kind.
	var err error
	judged.Networks, err = p.reader.Networks(ctx)
	judged.NetworksKnown = err == nil
	return judged
}

// planned is all of the command between reading and showing.
func (q request) planned(facts validators.SettingFacts) (planView, error) {
	warnings, err := judge(facts, q)
	if err != nil {
		return planView{}, err
	}
	view := q.view(facts.Facts)
	view.warn(warnings)
	return view, nil
}

// then are the values in force after the changes.
func (q request) then(facts settings.Facts) settings.Values {
	own, system := q.to(facts)
	return settings.Resolve(own, system, facts.Profile.Name)
}

// view of the plan, which goes by what is said in both groups then.
func (q request) view(facts settings.Facts) planView {
	then := q.then(facts)
	applied := map[string]bool{}
	if len(q.changes) > 0 {
		for _, s := range settings.Make(facts).Settings {
			applied[string(s.Name)] = s.Applied
		}
	}
	facts.OwnValues, facts.SystemValues = q.to(facts)
	view := viewOf(facts.Profile, facts, q.changes, then)
	for i := range view.Settings {
		view.Settings[i].appliedNow = applied[view.Settings[i].Name]
	}
	return view
}

// completeRollout gathers what is left out where a value in force is malformed,
// and a change puts that right.
func (p place) completeRollout(ctx context.Context, facts *settings.Facts, then settings.Values, o cluster.FactsOptions) error {
	if _, err := settings.SharedVolumeNetwork(facts.Values, p.Storage()); err == nil {
		return nil
	}
	if _, err := settings.SharedVolumeNetwork(then, p.Storage()); err != nil {
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
	if view.Outcome == outcomeWaits {
		return exitWaits
	}
	return nil
}
