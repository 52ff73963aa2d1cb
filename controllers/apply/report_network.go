package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// progressEvery is how often progress within a phase is written: each node makes progress.
const progressEvery = 5 * time.Second

// reportNetwork writes the step of the network into the record.
func (r *Reconciler) reportNetwork(ctx context.Context, facts rollout.Rollout, step rollout.Step) error {
	object, err := r.Cached.RolloutObject(ctx)
	if err != nil {
		return client.IgnoreNotFound(err) // just created
	}
	if facts.Record.Unknown && facts.Record.Problem == "" {
		return nil
	}
	before := object.Status.DeepCopy()
	if problem := facts.Record.Problem; problem != "" { // nothing else of the record is changed
		object.Status.Phase, object.Status.Message = string(rollout.PhaseInvalid), problem
	} else {
		setProgress(&object.Status, facts, step)
	}
	if equality.Semantic.DeepEqual(before, &object.Status) || !r.mayWrite("the record", object.Status.Phase+" "+object.Status.Desired, progressEvery) {
		return nil
	}
	if problem := facts.Record.Problem; problem != "" {
		r.Log.Error("nothing is rolled out", "error", problem)
		r.Events.Eventf(object, nil, corev1.EventTypeWarning, "Malformed", "Read", "nothing is rolled out: %s", kit.Clip(problem, kit.MaxNote-100))
	}
	// An update, not a patch: a changed record must not get an old report.
	if err := r.Client.Status().Update(ctx, object); err != nil {
		if kit.IsConflict(err) {
			delete(r.lastWrites, "the record") // nothing was written
		}
		return fmt.Errorf("reporting in NetworkRollout %s: %w", object.Name, err)
	}
	return nil
}

// followed is the step to report if the storage system rolls out by itself.
func followed(facts rollout.Rollout, step rollout.Step) rollout.Step {
	if step.Phase == rollout.PhaseInvalid {
		return step
	}
	step = rollout.Step{Phase: rollout.PhaseWaiting, Message: "waiting for the storage system to apply it", Updated: len(facts.Clients), Total: facts.DaemonSet.Wanted}
	if facts.Record.Clients == facts.Desired && facts.Record.Servers == facts.Desired {
		step.Applied, step.Phase, step.Message = true, rollout.PhaseApplied, "applied by the storage system"
	}
	return step
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
	status.Blockers = reads.Blockers(slices.Concat(step.Blockers, step.Volumes.Blockers))
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
