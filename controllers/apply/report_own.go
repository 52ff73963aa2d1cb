package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/settings"
)

// reportOwn writes the status of Fairlead's own settings.
func (r *Reconciler) reportOwn(ctx context.Context, facts settings.Facts, plans map[settings.Name]settings.SettingPlan, t *telling) {
	var list v1alpha1.SettingList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Profile.Namespace)); err != nil {
		t.add(fmt.Errorf("listing settings.fairlead.io: %w", err))
		return
	}
	for i := range list.Items {
		setting := &list.Items[i]
		plan, known := plans[settings.Name(setting.Name)]
		if !known || !judged(setting, plan.Value) {
			continue
		}
		before := setting.Status.DeepCopy()
		fillOverride(&setting.Status, facts, plan, setting.Generation)
		r.fill(setting, plan)
		r.metrics.reported(setting)
		if !equality.Semantic.DeepEqual(before, &setting.Status) {
			if err := r.Client.Status().Update(ctx, setting); err != nil {
				t.add(fmt.Errorf("reporting in setting %s: %w", setting.Name, err))
			} else {
				r.tell(setting, before.Conditions, setting.Status.Conditions)
			}
		}
		closing := r.closeOverride(ctx, setting, plan)
		if setting.Value == nil {
			closing = r.closeRequest(ctx, setting) // there is no value here that it could be for
		}
		t.add(closing)
	}
}

// judged tells whether the plan was made for this value of the setting: the
// list may be newer than the facts, and then an event is on its way.
func judged(setting *v1alpha1.Setting, value settings.Value) bool {
	if setting.Value == nil {
		return value.Source != settings.SourceFairlead
	}
	return value.Source == settings.SourceFairlead && value.Text == *setting.Value
}

func (r *Reconciler) fill(setting *v1alpha1.Setting, plan settings.SettingPlan) {
	status := &setting.Status
	if status.EffectiveValue != plan.Value.Text || status.PendingSince == nil {
		now := r.now()
		status.PendingSince = &now
	}
	status.EffectiveValue, status.Source = plan.Value.Text, string(plan.Value.Source)
	status.ObservedGeneration = setting.Generation
	status.Blockers = cluster.Blockers(plan.Blockers)
	status.Applied = plan.Applied
	status.Components = nil
	for _, p := range plan.Progress {
		status.Components = append(status.Components, v1alpha1.ComponentProgress{Kind: string(p.Kind), Updated: int32(p.Updated), Total: int32(p.Total)})
	}
	if plan.Applied {
		status.AppliedValue, status.PendingSince = &plan.Value.Text, nil
		delete(r.failures, plan.Name)
	}
	status.LastError = r.failures[plan.Name]
	meta.SetStatusCondition(&status.Conditions, appliedCondition(plan, setting.Generation, r.Clock.Now()))
}

// tell emits an event when a phase begins, or what is waited for changes; the
// progress within a phase is in the condition. That a setting is applied is
// news only where it was not.
func (r *Reconciler) tell(setting client.Object, before, after []metav1.Condition) {
	was, is := meta.FindStatusCondition(before, v1alpha1.ConditionApplied), meta.FindStatusCondition(after, v1alpha1.ConditionApplied)
	if is.Status == metav1.ConditionTrue && (was == nil || was.Status == metav1.ConditionTrue) ||
		was != nil && was.Reason == is.Reason && (was.Message == is.Message || is.Reason == string(settings.PhaseRolling) || is.Reason == string(settings.PhaseRestarting)) {
		return
	}
	r.Events.Eventf(setting, nil, corev1.EventTypeNormal, is.Reason, "Apply", "%s", clipped(is.Message))
}

// clipped fits the note of an event, which takes 1 KiB.
func clipped(message string) string {
	if len(message) <= 1024 {
		return message
	}
	return message[:1021] + "..."
}
