package apply

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/settings"
)

// closeOverride takes the request away once the value is applied, and where it
// is not for the value in force, so that no gate stays open for later. Who
// overrode it, and why, stays for the record.
func (r *Reconciler) closeOverride(ctx context.Context, setting client.Object, plan settings.SettingPlan) error {
	if _, asked := setting.GetAnnotations()[settings.OverrideAnnotation]; !asked {
		return nil
	}
	override, open := settings.ReadOverride(setting.GetAnnotations(), plan.Value.Text)
	if !open {
		return r.closeRequest(ctx, setting)
	}
	if r.sayOnce("override of "+setting.GetName(), override.Text()) {
		r.metrics.overrides.WithLabelValues(setting.GetName()).Inc()
		r.Log.Warn("the gate of a setting is overridden", "setting", setting.GetName(), "value", override.Value, "by", override.By, "reason", override.Reason)
		r.Events.Eventf(setting, nil, corev1.EventTypeWarning, "GateOverridden", "Apply",
			"%s overrides the gate for value %q: %s", override.By, override.Value, clipped(override.Reason))
	}
	if !plan.Applied {
		return nil
	}
	return r.closeRequest(ctx, setting)
}

// closeRequest takes the request away.
func (r *Reconciler) closeRequest(ctx context.Context, setting client.Object) error {
	if _, asked := setting.GetAnnotations()[settings.OverrideAnnotation]; !asked {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{settings.OverrideAnnotation: nil}, "resourceVersion": setting.GetResourceVersion(),
	}})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	if err := r.Client.Patch(ctx, setting, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("closing the gate of %s again: %w", setting.GetName(), err)
	}
	return nil
}
