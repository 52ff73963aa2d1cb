package rollout

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/settings"
)

// report tells the step in every place where somebody may look: the record,
// Fairlead's own settings and the storage system's.
func (r *Reconciler) report(ctx context.Context, values settings.Values, facts settings.Rollout, step settings.Step) error {
	if err := r.reportRollout(ctx, facts, step); err != nil {
		return err
	}
	if err := r.reportOwn(ctx, values, step); err != nil || !r.Applies {
		return err
	}
	return r.reportSystem(ctx, values, step)
}

func (r *Reconciler) reportRollout(ctx context.Context, facts settings.Rollout, step settings.Step) error {
	rollout, err := r.Cached.RolloutObject(ctx)
	if err != nil {
		return err
	}
	before := rollout.Status.DeepCopy()
	rollout.Status.Desired = facts.Desired.String()
	rollout.Status.Clients.Updated, rollout.Status.Clients.Total = int32(step.Updated), int32(step.Total)
	rollout.Status.Phase, rollout.Status.Message = string(step.Phase), step.Message
	if step.Applied && step.Volumes.Phase != "" {
		rollout.Status.Phase = string(step.Volumes.Phase)
	}
	if step.Volumes.Message != "" {
		rollout.Status.Message += "; " + step.Volumes.Message
	}
	rollout.Status.Blockers = apiBlockers(slices.Concat(step.Blockers, step.Volumes.Blockers))
	rollout.Status.OutOfLine = apiOutOfLine(settings.FindOutOfLine(facts))
	if equality.Semantic.DeepEqual(before, &rollout.Status) {
		return nil
	}
	// An update, not a patch: written over a record that has moved on it would be a lie.
	if err := r.Client.Status().Update(ctx, rollout); err != nil {
		return fmt.Errorf("reporting in NetworkRollout %s: %w", rollout.Name, err)
	}
	return nil
}

// maxListed is the limit of the lists in the API types.
const maxListed = 64

func apiOutOfLine(found []settings.OutOfLine) []v1alpha1.OutOfLine {
	var list []v1alpha1.OutOfLine
	for _, o := range found[:min(len(found), maxListed)] {
		list = append(list, v1alpha1.OutOfLine{Kind: string(o.Kind), Name: o.Name, Message: o.Message})
	}
	return list
}

func apiBlockers(blockers []settings.Blocker) []v1alpha1.Blocker {
	var list []v1alpha1.Blocker
	for _, b := range blockers[:min(len(blockers), maxListed)] {
		list = append(list, v1alpha1.Blocker{Kind: string(b.Kind), Name: b.Name, Nodes: b.Nodes, Workloads: b.Workloads, Message: b.Message})
	}
	return list
}
