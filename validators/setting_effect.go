package validators

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// checkEffect reports the effect of the change and its blockers, from the plan that the controller will follow. It
// refuses values that could never be applied.
func (v *Verdict) checkEffect(d catalog.Definition, before, after SettingFacts) {
	if v.Reason != "" {
		return
	}
	v.Reason = ReasonValid
	if v.refuseImpossible(d, before, after); len(v.Problems) > 0 {
		return
	}
	if problem := after.Values[d.Name].Problem; problem != "" {
		v.warn("not applied until the value is corrected: %s", problem)
		return
	}
	if !d.DangerZone {
		return
	}
	v.warnOfMounts(before, after)
	v.checkCombination(d, before, after)
	if before.Values[d.Name] == after.Values[d.Name] {
		return
	}
	plan := planner.Foresee(after.Facts)
	if before.Applies {
		if before.Idle {
			v.warn("no controller of Fairlead leads now: nothing is applied until one does; fairlead check says what is wrong")
		}
		v.announceNetwork(d, before, after, plan.Outlook)
		if !before.OmitEffect {
			v.announce(d, plan)
		}
	} else {
		v.warnGuarded(d, before)
	}
	v.warnUnrestarted(d, plan, longhorn.Name)
}

// announce says what happens to the components, in the words of the plan.
func (v *Verdict) announce(d catalog.Definition, plan planner.Plan) {
	change, _ := plan.Setting(d.Name)
	if change.Effect == "" {
		return
	}
	switch {
	case plan.Waits(d.Name):
		v.Reason = ReasonPending
	case v.Reason != ReasonPending:
		v.Reason = ReasonApplies
	}
	v.warn("%s%s", rollout.EffectPrefix, change.Effect)
}

// announceNetwork says what happens if the network for RWX volumes after the change is not the recorded one.
func (v *Verdict) announceNetwork(d catalog.Definition, before, after SettingFacts, outlook rollout.Outlook) {
	if d.Name == catalog.StorageNetworkForRWX && after.endpointNetwork() != "" {
		return // the newer setting takes precedence
	}
	desired, err := catalog.SharedVolumeNetwork(after.Values, after.Names)
	if err != nil {
		if d.Gate == catalog.SharedVolumesDetached || d.NamesNetwork {
			v.warn("not applied until the value is corrected: %v", err)
		}
		return
	}
	was, err := catalog.SharedVolumeNetwork(before.Values, before.Names)
	record := before.Rollout.Record
	if record.Problem != "" {
		v.Reason = ReasonPending
		v.warn("not applied now: %s", record.Problem)
		return
	}
	if before.OmitEffect || record.Clients == desired && record.Servers == desired || err == nil && was == desired && d.Gate != catalog.SharedVolumesDetached {
		return
	}
	v.Reason = ReasonApplies
	if outlook.Waits() {
		v.Reason = ReasonPending
	}
	about := ""
	if d.Gate != catalog.SharedVolumesDetached { // the setting has other effects too
		about = "for RWX volumes: "
	}
	v.warn("%s%s%s", rollout.EffectPrefix, about, outlook.Message())
}

// warnGuarded says that Fairlead does not apply its own settings with duty settings: guard.
func (v *Verdict) warnGuarded(d catalog.Definition, facts SettingFacts) {
	if facts.Own {
		v.warn("Fairlead only checks settings here, and %s applies its own settings: set %s in settings.%[1]s.io too", longhorn.Name, d.Name)
	}
}

// refuseEngineOff keeps a data engine on while its volumes are attached: no instance manager would be left to serve them.
// The proposal leaves this check to the webhook.
func (v *Verdict) refuseEngineOff(engine string, after SettingFacts) {
	attached := planner.AttachedVolumes(after.Rollout.Volumes, engine)
	if len(attached) == 0 {
		return
	}
	are, volumes := "is", "the volume"
	if len(attached) > 1 {
		are, volumes = "are", "the volumes"
	}
	v.refuse(ReasonEngineInUse, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
		"the %s data engine can't be switched off while %d of its volumes %s attached: %s; stop the workloads that use %s, then try again",
		engine, len(attached), are, catalog.Detail(attached), volumes)))
}

// refuseMissingClass: the API server refuses pods with a PriorityClass that does not exist.
func (v *Verdict) refuseMissingClass(name string, after SettingFacts) {
	if name == "" || after.Classes[name] {
		return
	}
	there := slices.Sorted(maps.Keys(after.Classes))
	v.refuse(ReasonNoSuchClass, field.Invalid(field.NewPath("value"), name, fmt.Sprintf(
		"there is no PriorityClass of this name (in this cluster: %s), so no pod with it would start; create the PriorityClass first", cmp.Or(catalog.FirstOf(there), "none"))))
}
