package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// progressEvery is how often progress within a phase is written: each node makes progress.
const progressEvery = 5 * time.Second

// reportRollout writes the step into the record; package apply reports it in the settings.
// It returns when to write a delayed report.
func (r *Reconciler) reportRollout(ctx context.Context, facts rollout.Rollout, step rollout.Step) (after time.Duration, _ error) {
	rollout, err := r.Cached.RolloutObject(ctx)
	if err != nil {
		return 0, err
	}
	before := rollout.Status.DeepCopy()
	setProgress(&rollout.Status, facts, step)
	if equality.Semantic.DeepEqual(before, &rollout.Status) {
		return 0, nil
	}
	now := r.Clock.Now()
	if left := r.reported.Add(progressEvery).Sub(now); left > 0 && rollout.Status.Phase == before.Phase && rollout.Status.Desired == before.Desired {
		return left, nil
	}
	// An update, not a patch: a changed record must not get an old report.
	if err := r.Client.Status().Update(ctx, rollout); err != nil {
		return 0, fmt.Errorf("reporting in NetworkRollout %s: %w", rollout.Name, err)
	}
	r.reported = now
	return 0, nil
}

// reportMalformed says in the record that it can't be read, and changes nothing else of it.
func (r *Reconciler) reportMalformed(ctx context.Context, problem error) error {
	object, err := r.Cached.RolloutObject(ctx)
	if err != nil || object.Status.Message == problem.Error() {
		return err
	}
	object.Status.Phase, object.Status.Message = string(rollout.PhaseInvalid), problem.Error()
	r.Log.Error("nothing is rolled out", "error", problem.Error())
	r.Events.Eventf(object, nil, corev1.EventTypeWarning, "Malformed", "Read", "nothing is rolled out: %s", kit.Clip(problem.Error(), kit.MaxNote-100))
	if err := r.Client.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("reporting in NetworkRollout %s: %w", object.Name, err)
	}
	return nil
}

// setProgress writes a roll-out's progress and blockers.
func setProgress(status *v1alpha1.NetworkRolloutStatus, facts rollout.Rollout, step rollout.Step) {
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
	status.Refused = nil
	for _, r := range facts.Record.Refused[:min(len(facts.Record.Refused), v1alpha1.MaxListed)] {
		status.Refused = append(status.Refused, v1alpha1.RefusedWrite{Kind: string(r.Kind), Name: r.Name, Message: r.Message})
	}
	status.OutOfLine = apiOutOfLine(rollout.FindOutOfLine(facts))
}

func apiOutOfLine(found []rollout.OutOfLine) []v1alpha1.OutOfLine {
	var list []v1alpha1.OutOfLine
	for _, o := range found[:min(len(found), v1alpha1.MaxListed)] {
		list = append(list, v1alpha1.OutOfLine{Kind: string(o.Kind), Name: o.Name, Message: o.Message})
	}
	return list
}
