package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/settings"
)

// closeOverride takes the request away once the value is applied, where it has
// expired, and where it is not for the value in force, so that no gate stays open for later. Who
// overrode it, and why, stays for the record.
func (r *Reconciler) closeOverride(ctx context.Context, setting client.Object, plan settings.SettingPlan) error {
	if _, asked := setting.GetAnnotations()[settings.OverrideAnnotation]; !asked {
		return nil
	}
	override, open := settings.ReadOverride(setting.GetAnnotations(), plan.Value.Text)
	now := r.Clock.Now()
	switch {
	case !open || plan.Applied:
		return r.closeRequest(ctx, setting)
	case !override.Expired(now):
		r.wakeIn(override.Until().Sub(now))
		return nil
	}
	if r.sayOnce("end of the override of "+setting.GetName(), override.Text()) {
		r.Log.Warn("an override has expired", "setting", setting.GetName(), "value", override.Value, "by", override.By, "reason", override.Reason)
		r.Events.Eventf(setting, nil, corev1.EventTypeWarning, v1alpha1.ReasonOverrideExpired, "Apply", "%s", clipped(expiredMessage(override)))
	}
	return r.closeRequest(ctx, setting)
}

// tellOverrides tells of each override once, before anything is done under it.
// The condition keeps for the next leader that it was told.
func (r *Reconciler) tellOverrides(ctx context.Context, facts settings.Facts, t *telling) {
	for name, override := range facts.Overrides {
		if override.Expired(facts.Now) {
			continue
		}
		key := client.ObjectKey{Namespace: r.Profile.Namespace, Name: string(name)}
		var own v1alpha1.Setting
		if err := r.Client.Get(ctx, key, &own); err != nil {
			t.add(fmt.Errorf("reading setting %s: %w", name, err))
			continue
		}
		was := meta.FindStatusCondition(own.Status.Conditions, v1alpha1.ConditionGateOverridden)
		if was != nil && was.Status == metav1.ConditionTrue && was.Message == overrideMessage(override) {
			continue
		}
		var asked client.Object = &own
		if facts.Values[name].Source != settings.SourceFairlead {
			asked = &longhorn.Setting{}
			if err := r.Client.Get(ctx, key, asked); err != nil {
				t.add(fmt.Errorf("reading the storage system's setting %s: %w", name, err))
				continue
			}
		}
		if r.sayOnce("override of "+string(name), override.Text()) {
			r.metrics.overrides.WithLabelValues(string(name)).Inc()
			r.Log.Warn("the gate of a setting is overridden", "setting", name, "value", override.Value, "by", override.By, "reason", override.Reason)
			r.Events.Eventf(asked, nil, corev1.EventTypeWarning, v1alpha1.ConditionGateOverridden, "Apply",
				"%s overrides the gate for value %q: %s", override.By, override.Value, clipped(override.Reason))
		}
	}
}

// fillOverride says in the status whether the gate is overridden, and that an
// override has expired as long as its value waits.
func fillOverride(status *v1alpha1.SettingStatus, facts settings.Facts, plan settings.SettingPlan, generation int64) {
	override, asked := facts.Overrides[plan.Name]
	condition := metav1.Condition{
		Type: v1alpha1.ConditionGateOverridden, Status: metav1.ConditionTrue, Reason: v1alpha1.ConditionGateOverridden,
		Message: shorten(overrideMessage(override)), ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(facts.Now),
	}
	if asked && override.Expired(facts.Now) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, v1alpha1.ReasonOverrideExpired, shorten(expiredMessage(override))
	}
	was := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionGateOverridden)
	switch {
	case plan.Applied, !asked && (status.EffectiveValue != plan.Value.Text || was != nil && was.Status == metav1.ConditionTrue):
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionGateOverridden)
	case asked:
		meta.SetStatusCondition(&status.Conditions, condition)
	}
}

func overrideMessage(o settings.Override) string {
	return fmt.Sprintf("%s overrides the gate for value %q until %s: %s", o.By, o.Value, o.Until().UTC().Format(time.RFC3339), o.Reason)
}

func expiredMessage(o settings.Override) string {
	return fmt.Sprintf("the override of the gate for value %q by %s has ended after %.0f hours, and the gate is closed: to override it for longer, give a new reason",
		o.Value, o.By, settings.OverrideLifetime.Hours())
}

// closeRequest takes the request away.
func (r *Reconciler) closeRequest(ctx context.Context, setting client.Object) error {
	if _, asked := setting.GetAnnotations()[settings.OverrideAnnotation]; !asked {
		return nil
	}
	// Longhorn's webhook may refuse it each time, and each look comes by here.
	what := fmt.Sprintf("close %T %s", setting, setting.GetName())
	if !r.due(what, setting.GetAnnotations()[settings.OverrideAnnotation]+setting.GetAnnotations()[settings.OverriddenAnnotation], tellEvery) {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{settings.OverrideAnnotation: nil}, "resourceVersion": setting.GetResourceVersion(),
	}})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	if err := r.Client.Patch(ctx, setting, client.RawPatch(types.MergePatchType, data)); err != nil {
		if apierrors.IsConflict(err) {
			delete(r.paces, what) // nothing was written
		}
		return fmt.Errorf("closing the gate of %s again: %w", setting.GetName(), err)
	}
	return nil
}
