package apply

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// reportOwn writes the status of Fairlead's own settings.
func (r *Reconciler) reportOwn(ctx context.Context, facts planner.Facts, whole planner.Plan, plans map[catalog.Name]planner.SettingPlan, t *reporting) {
	var list v1alpha1.SettingList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Names.Namespace)); err != nil {
		t.add(fmt.Errorf("listing settings.fairlead.io: %w", err))
		return
	}
	for i := range list.Items {
		setting := &list.Items[i]
		plan, known := plans[catalog.Name(setting.Name)]
		if !known || !isPlannedFor(setting, facts) {
			continue
		}
		before := setting.Status.DeepCopy()
		now, _ := whole.WorkFor(plan.Name)
		r.fill(setting, plan, r.Applies && len(now) > 0)
		r.metrics.reported(setting, len(plan.Blockers))
		t.add(r.writeOwn(ctx, setting, before))
	}
}

// writeOwn writes the status, and emits an event for what is written.
func (r *Reconciler) writeOwn(ctx context.Context, setting *v1alpha1.Setting, before *v1alpha1.SettingStatus) error {
	status := &setting.Status
	is := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionApplied)
	if !equality.Semantic.DeepEqual(before, status) {
		head := fmt.Sprint(setting.Generation, status.Applied, status.Underway, is.Reason, status.Source, status.EffectiveValue, status.LastError)
		what := "status " + setting.Name
		if !r.mayWrite(what, head, statusEvery) {
			return nil
		}
		if err := r.Client.Status().Update(ctx, setting); err != nil {
			if kit.IsConflict(err) {
				delete(r.lastWrites, what) // nothing was written
			}
			return fmt.Errorf("reporting in setting %s: %w", setting.Name, err)
		}
	}
	r.emitEvent(setting, meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionApplied), is)
	return nil
}

// isPlannedFor reports whether the plan was made for this version of the setting. The list may be newer or older than the
// facts; an event follows then.
func isPlannedFor(setting *v1alpha1.Setting, facts planner.Facts) bool {
	name := catalog.Name(setting.Name)
	ours, set := facts.OwnValues[name]
	return set == (setting.Value != nil) && (!set || ours == *setting.Value) && reads.Reported(setting).Equal(facts.Reported[name])
}

// fill writes the plan into the status. begins: a component is about to be changed for the setting.
func (r *Reconciler) fill(setting *v1alpha1.Setting, plan planner.SettingPlan, begins bool) {
	status := &setting.Status
	if status.EffectiveValue != plan.Value.Text || status.PendingSince == nil {
		now := r.now()
		status.PendingSince = &now
	}
	status.EffectiveValue, status.Source = plan.Value.Text, string(plan.Value.Source)
	status.ObservedGeneration = setting.Generation
	status.Blockers = reads.Blockers(plan.Blockers)
	status.Applied = plan.Applied
	status.Underway = !plan.Applied && (status.Underway || begins)
	status.Components = nil
	for _, p := range plan.Progress {
		status.Components = append(status.Components, v1alpha1.ComponentProgress{Kind: string(p.Kind), Updated: int32(p.Updated), Total: int32(p.Total)})
	}
	status.LastError = r.backoff.lastError(plan.Name)
	if plan.Applied {
		status.AppliedValue, status.PendingSince, status.LastError = &plan.Value.Text, nil, ""
	}
	meta.SetStatusCondition(&status.Conditions, appliedCondition(plan, setting.Generation, r.Clock.Now()))
}

// emitEvent emits an event when a phase begins, or its blockers change; progress within a phase is in
// the condition. Applied is reported only after another phase. A new leader takes the status as reported.
func (r *Reconciler) emitEvent(setting client.Object, was, is *metav1.Condition) {
	if last, ok := r.lastEvents[setting.GetName()]; ok {
		was = &last
	}
	if is.Status == metav1.ConditionTrue && (was == nil || was.Status == metav1.ConditionTrue) ||
		was != nil && was.Reason == is.Reason && (was.Message == is.Message || is.Reason == string(rollout.PhaseRolling) || is.Reason == string(planner.PhaseRestarting)) {
		return
	}
	if !r.mayWrite("event of "+setting.GetName(), is.Reason, eventEvery) {
		return
	}
	if r.lastEvents == nil {
		r.lastEvents = map[string]metav1.Condition{}
	}
	r.lastEvents[setting.GetName()] = *is
	r.Events.Eventf(setting, nil, corev1.EventTypeNormal, is.Reason, "Apply", "%s", kit.Note(is.Message))
}

func appliedCondition(s planner.SettingPlan, generation int64, now time.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse,
		Reason: string(s.Phase), Message: kit.Clip(s.Message, maxMessage),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
	if s.Applied {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

// maxMessage is the limit of a condition's message in the API.
const maxMessage = 32768
