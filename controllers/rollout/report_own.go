package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/settings"
)

// reportOwn writes the status of Fairlead's own settings.
func (r *Reconciler) reportOwn(ctx context.Context, values settings.Values, step settings.Step) error {
	var list v1alpha1.SettingList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Profile.Namespace)); err != nil {
		return fmt.Errorf("listing settings.fairlead.io: %w", err)
	}
	for i := range list.Items {
		setting := &list.Items[i]
		value, known := values[settings.Name(setting.Name)]
		if !known || !judged(setting, value) {
			continue
		}
		before := setting.Status.DeepCopy()
		told := step
		if !inDangerZone(setting.Name) {
			told = settings.Step{Applied: true, Phase: settings.PhaseApplied, Message: "in force"}
		}
		r.fill(setting, value, told)
		if equality.Semantic.DeepEqual(before, &setting.Status) {
			continue
		}
		if err := r.Client.Status().Update(ctx, setting); err != nil {
			return fmt.Errorf("reporting in setting %s: %w", setting.Name, err)
		}
		r.tell(setting, before.Conditions, setting.Status.Conditions)
	}
	return nil
}

// judged tells whether the step was decided on this value of the setting: the
// list may be newer than the facts, and then an event is on its way.
func judged(setting *v1alpha1.Setting, value settings.Value) bool {
	if setting.Value == nil {
		return value.Source != settings.SourceFairlead
	}
	return value.Source == settings.SourceFairlead && value.Text == *setting.Value
}

func (r *Reconciler) fill(setting *v1alpha1.Setting, value settings.Value, step settings.Step) {
	status := &setting.Status
	status.EffectiveValue, status.Source = value.Text, string(value.Source)
	status.ObservedGeneration = setting.Generation
	status.Blockers = apiBlockers(step.Blockers)
	status.Applied = step.Applied
	if step.Applied {
		status.AppliedValue = &value.Text
	}
	meta.SetStatusCondition(&status.Conditions, appliedCondition(step, setting.Generation, r.now()))
}

// tell emits an event when a phase begins, or what is waited for changes; the
// progress within a phase is in the condition.
func (r *Reconciler) tell(setting client.Object, before, after []metav1.Condition) {
	was, is := meta.FindStatusCondition(before, v1alpha1.ConditionApplied), meta.FindStatusCondition(after, v1alpha1.ConditionApplied)
	if was != nil && was.Reason == is.Reason && (was.Message == is.Message || is.Reason == string(settings.PhaseRolling)) {
		return
	}
	r.Events.Eventf(setting, nil, corev1.EventTypeNormal, is.Reason, "Apply", "%s", is.Message)
}
