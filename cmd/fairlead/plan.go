package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/settings"
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
force, else for what they would be: as if set in settings.fairlead.io, or taken away
there. Only form is checked. The webhooks, which are not asked, may still refuse or
warn of a value for what else is in the cluster, such as a network that is missing.

Exit codes:
  0  all that was asked about would be applied now, or there is nothing to do
  1  error: the cluster could not be read, or a name or value was refused; see standard error
  2  something that was asked about would wait; the plan says for what`,
		Example: `  fairlead plan --set priority-class=longhorn-critical
  fairlead plan --set storage-network=kube-system/storage-net --set storage-network-for-rwx-volume-enabled=true
  fairlead plan --unset priority-class -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changes, err := parseChanges(o.set, o.unset)
			if err != nil {
				return err
			}
			p, err := o.open()
			if err != nil {
				return err
			}
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
	cmd.Flags().StringArrayVar(&o.unset, "unset", nil, "name of a setting whose value is taken away from settings.fairlead.io; may be given several times")
	return cmd
}

// plan reads the cluster and makes the plan.
func (p place) plan(ctx context.Context, changes changes, now time.Time) (planView, error) {
	own, system, err := p.reader.Values(ctx)
	if err != nil {
		return planView{}, err
	}
	o := cluster.FactsOptions{Now: now, Settle: p.configuration.Networks.Settle.Duration, VolumeNetworks: p.Duties.ServesVolumeNetworks()}
	facts, err := p.reader.Facts(ctx, o)
	if err != nil {
		return planView{}, err
	}
	then := settings.Resolve(changes.to(own), system, p.Name)
	if settings.Make(facts.With(then)).AsksForNetworks {
		if err := p.reader.AddNetworks(ctx, &facts); err != nil {
			return planView{}, err
		}
	}
	if err := p.completeRollout(ctx, &facts, then, o); err != nil {
		return planView{}, err
	}
	return viewOf(p.Storage(), facts, changes, then), nil
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
	facts.Rollout.Settle = o.Settle
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
