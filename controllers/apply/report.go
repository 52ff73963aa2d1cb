package apply

import (
	"context"

	"github.com/fairlead-io/fairlead/settings"
)

// report tells the plan in every place where somebody may look: Fairlead's own
// settings, the storage system's, and metrics.
func (r *Reconciler) report(ctx context.Context, facts settings.Facts, plan settings.Plan) error {
	told := map[settings.Name]settings.SettingPlan{}
	for _, s := range plan.Settings {
		if !r.Applies {
			s = guarded(s)
		}
		told[s.Name] = s
	}
	for _, d := range settings.All() {
		if !d.DangerZone {
			told[d.Name] = settings.SettingPlan{Name: d.Name, Value: facts.Values[d.Name], Applied: true, Phase: settings.PhaseApplied, Message: "in force"}
		}
	}
	if err := r.tellStoodDown(ctx, facts); err != nil {
		return err
	}
	if err := r.reportOwn(ctx, told); err != nil || !r.Applies {
		return err
	}
	return r.reportSystem(ctx, told)
}

// guarded is what is told where the storage system applies settings by itself.
func guarded(s settings.SettingPlan) settings.SettingPlan {
	switch {
	case s.Phase == settings.PhaseInvalid:
	case s.Applied:
		s.Message = "applied by the storage system"
	default:
		s.Phase, s.Message = settings.PhaseWaiting, "waiting for the storage system to apply it; "+s.Message
	}
	return s
}
