package rollout

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/settings"
)

// reportRollout tells the step in the record; package apply tells it in the settings.
func (r *Reconciler) reportRollout(ctx context.Context, facts settings.Rollout, step settings.Step) error {
	rollout, err := r.Cached.RolloutObject(ctx)
	if err != nil {
		return err
	}
	before := rollout.Status.DeepCopy()
	tell(&rollout.Status, facts, step)
	if equality.Semantic.DeepEqual(before, &rollout.Status) {
		return nil
	}
	// An update, not a patch: written over a record that has moved on it would be a lie.
	if err := r.Client.Status().Update(ctx, rollout); err != nil {
		return fmt.Errorf("reporting in NetworkRollout %s: %w", rollout.Name, err)
	}
	return nil
}

// tell writes where a roll-out is, and what it waits for.
func tell(status *v1alpha1.NetworkRolloutStatus, facts settings.Rollout, step settings.Step) {
	status.Desired = facts.Desired.String()
	status.Clients.Updated, status.Clients.Total = int32(step.Updated), int32(step.Total)
	status.Phase, status.Message = string(step.Phase), step.Message
	if step.Applied && step.Volumes.Phase != "" {
		status.Phase = string(step.Volumes.Phase)
	}
	if step.Volumes.Message != "" {
		status.Message += "; " + step.Volumes.Message
	}
	status.Blockers = cluster.Blockers(slices.Concat(step.Blockers, step.Volumes.Blockers))
	status.OutOfLine = apiOutOfLine(settings.FindOutOfLine(facts))
}

func apiOutOfLine(found []settings.OutOfLine) []v1alpha1.OutOfLine {
	var list []v1alpha1.OutOfLine
	for _, o := range found[:min(len(found), v1alpha1.MaxListed)] {
		list = append(list, v1alpha1.OutOfLine{Kind: string(o.Kind), Name: o.Name, Message: o.Message})
	}
	return list
}
