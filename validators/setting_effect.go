package validators

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/settings"
)

// checkEffect says what the change does and what it waits for, by the plan that
// the controller will follow, and refuses what would hurt whenever it came.
func (v *Verdict) checkEffect(d settings.Definition, before, after SettingFacts) {
	if v.Reason != "" {
		return
	}
	v.Reason = ReasonValid
	if v.refuseWritten(d, before, after); len(v.Problems) > 0 {
		return
	}
	inForce := after.Values[d.Name]
	if !before.Own && inForce.Source == settings.SourceFairlead && inForce.Text != after.SystemValues[d.Name] {
		if after.unheeded(d) == "" {
			v.warn("has no effect: settings.fairlead.io %s says %q and wins", d.Name, inForce.Text)
		} else {
			v.warn("%s goes by it, and Fairlead does not roll it out while settings.fairlead.io %s says %q: delete that", after.Profile.Name, d.Name, inForce.Text)
		}
	}
	if !d.DangerZone {
		return
	}
	v.warnOfMounts(before, after)
	v.checkCombination(d, before, after)
	if before.Values[d.Name] == inForce && before.Overridden[d.Name] == after.Overridden[d.Name] {
		return
	}
	if !before.Applies {
		v.warnGuarded(d, before)
		v.warnKept(d, after)
		return
	}
	if why := after.unheeded(d); why != "" {
		v.Reason = ReasonNoEffect
		v.warn("accepted, but will not be applied: %s", why)
		v.announceNetwork(d, before, after) // which Fairlead goes by
		return
	}
	v.announceNetwork(d, before, after)
	v.announce(d, after)
	v.warnKept(d, after)
}

// unheeded tells why the value in force comes to nothing.
func (f SettingFacts) unheeded(d settings.Definition) string {
	return settings.Unheeded(f.Values, f.SystemValues, d.Name, f.Profile.Name)
}

// announce says what becomes of the components.
func (v *Verdict) announce(d settings.Definition, after SettingFacts) {
	plan := settings.Make(after.Facts)
	pending, text := settings.Announce(plan, d.Name)
	if text == "" {
		return
	}
	if v.Reason != ReasonPending {
		v.Reason = ReasonApplies
		if pending {
			v.Reason = ReasonPending
		}
	}
	v.warn("%s", text)
	if !after.Overridden[d.Name] {
		return
	}
	now, _ := plan.For(d.Name)
	var used []string
	done := "restarted"
	for _, w := range now {
		if len(w.Component.Uses) == 0 {
			continue
		}
		used = append(used, w.Component.Name)
		if w.Action == settings.RemoveComponent {
			done = "removed"
		}
	}
	if len(used) > 0 {
		v.warn("its gate is overridden: %s in use will be %s (%s); volumes on them will stop or fail over", settings.Count(len(used), "pod"), done, settings.FirstOf(used))
	}
}

// announceNetwork compares the network of shared volumes after the change with
// what is recorded.
func (v *Verdict) announceNetwork(d settings.Definition, before, after SettingFacts) {
	if d.Name == settings.StorageNetworkForRWX && after.endpointNetwork() != "" {
		return // the newer one wins: what is under way is not this one's
	}
	desired, err := settings.SharedVolumeNetwork(after.Values, after.Profile)
	if err != nil {
		if d.Gate == settings.SharedVolumesDetached || d.NamesNetwork {
			v.warn("nothing is applied until this is corrected: %v", err)
		}
		return
	}
	was, err := settings.SharedVolumeNetwork(before.Values, before.Profile)
	record := before.Rollout.Record
	if record.Clients == desired && record.Servers == desired || err == nil && was == desired && d.Gate != settings.SharedVolumesDetached {
		return
	}
	begin := before.Rollout
	begin.Desired, begin.Volumes, begin.Networks = desired, before.Volumes, after.Existing.Networks
	clients := len(before.Rollout.Clients)
	if blockers := settings.Blockers(begin); len(blockers) > 0 {
		v.Reason = ReasonPending
		v.warn("%s", settings.PendingWarning(blockers, clients))
		return
	}
	v.Reason = ReasonApplies
	if begin.Gate == settings.GateNode && len(settings.SharedVolumeGate(begin.Volumes)) > 0 {
		v.warn("%s", settings.NodeByNodeWarning(clients))
		return
	}
	v.warn("%s", settings.RollingWarning(clients))
}

// warnGuarded says that nobody applies a setting that only Fairlead knows.
func (v *Verdict) warnGuarded(d settings.Definition, facts SettingFacts) {
	if facts.Own {
		v.warn("Fairlead only guards settings here: %s applies %s of its own group; set that too", facts.Profile.Name, d.Name)
	}
}

// refuseEngineOff: a data engine is not switched off under its volumes. The
// proposal leaves this one to the webhook: no instance manager would be left to serve them.
func (v *Verdict) refuseEngineOff(engine string, after SettingFacts) {
	var attached []settings.Blocker
	for _, b := range settings.AttachedVolumes(after.Volumes) {
		if b.Engine == engine {
			attached = append(attached, b.Blocker)
		}
	}
	if len(attached) == 0 || after.overrides {
		return
	}
	while, them := "1 volume of it is", "it"
	if n := len(attached); n > 1 {
		while, them = fmt.Sprintf("%d volumes of it are", n), "them"
	}
	v.refuse(ReasonEngineInUse, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
		"the %s data engine can't be switched off while %s attached: %s; stop what uses %s, then try again",
		engine, while, settings.Detail(attached), them)))
}

// refuseMissingClass: the API server refuses every pod of a class that does not exist.
func (v *Verdict) refuseMissingClass(name string, after SettingFacts) {
	if name == "" || slices.Contains(after.PriorityClasses, name) {
		return
	}
	v.refuse(ReasonNoSuchClass, field.Invalid(field.NewPath("value"), name, fmt.Sprintf(
		"there is no PriorityClass of that name (in this cluster: %s), and no pod of it would start; create it first", settings.FirstOf(after.PriorityClasses))))
}
