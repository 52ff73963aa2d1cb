package validators

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// checkEffect says what the change does and what it waits for, by the plan that
// the controller will follow, and refuses what would hurt whenever it came.
func (v *Verdict) checkEffect(d catalog.Definition, before, after SettingFacts) {
	if v.Reason != "" {
		return
	}
	v.Reason = ReasonValid
	if v.refuseForGood(d, before, after); len(v.Problems) > 0 {
		return
	}
	if problem := after.Values[d.Name].Problem; problem != "" {
		v.warn("nothing is applied until this is corrected: %s", problem)
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
	plan := plan.Make(after.Facts)
	if before.Applies {
		v.announceNetwork(d, before, after)
		v.announce(d, plan)
	} else {
		v.warnGuarded(d, before)
	}
	v.warnKept(d, plan, after.Profile.Name)
}

// announce says what becomes of the components, in the words of the plan.
func (v *Verdict) announce(d catalog.Definition, plan plan.Plan) {
	change, _ := plan.Of(d.Name)
	if change.Works == "" {
		return
	}
	switch {
	case plan.Waits(d.Name):
		v.Reason = ReasonPending
	case v.Reason != ReasonPending:
		v.Reason = ReasonApplies
	}
	v.warn("accepted; %s", change.Works)
}

// announceNetwork compares the network of shared volumes after the change with
// what is recorded.
func (v *Verdict) announceNetwork(d catalog.Definition, before, after SettingFacts) {
	if d.Name == catalog.StorageNetworkForRWX && after.endpointNetwork() != "" {
		return // the newer one wins: what is under way is not this one's
	}
	desired, err := catalog.SharedVolumeNetwork(after.Values, after.Profile)
	if err != nil {
		if d.Gate == catalog.SharedVolumesDetached || d.NamesNetwork {
			v.warn("nothing is applied until this is corrected: %v", err)
		}
		return
	}
	was, err := catalog.SharedVolumeNetwork(before.Values, before.Profile)
	record := before.Rollout.Record
	if record.Clients == desired && record.Servers == desired || err == nil && was == desired && d.Gate != catalog.SharedVolumesDetached {
		return
	}
	begin := before.Rollout
	begin.Desired, begin.Volumes, begin.Networks = desired, before.Volumes, after.Existing.Networks
	clients := len(before.Rollout.Clients)
	if blockers := rollout.Blockers(begin); len(blockers) > 0 {
		v.Reason = ReasonPending
		v.warn("%s", rollout.PendingWarning(blockers, clients))
		return
	}
	v.Reason = ReasonApplies
	if begin.Gate == rollout.GateNode && len(catalog.SharedVolumeGate(begin.Volumes)) > 0 {
		v.warn("%s", rollout.NodeByNodeWarning(clients))
		return
	}
	v.warn("%s", rollout.RollingWarning(clients))
}

// warnGuarded says that nobody applies a setting that only Fairlead knows.
func (v *Verdict) warnGuarded(d catalog.Definition, facts SettingFacts) {
	if facts.Own {
		v.warn("Fairlead only guards settings here: %s applies %s of its own group; set that too", facts.Profile.Name, d.Name)
	}
}

// refuseEngineOff: a data engine is not switched off under its volumes. The
// proposal leaves this one to the webhook: no instance manager would be left to serve them.
func (v *Verdict) refuseEngineOff(engine string, after SettingFacts) {
	attached := plan.AttachedVolumes(after.Volumes, engine)
	if len(attached) == 0 {
		return
	}
	while, them := "1 volume of it is", "it"
	if n := len(attached); n > 1 {
		while, them = fmt.Sprintf("%d volumes of it are", n), "them"
	}
	v.refuse(ReasonEngineInUse, field.Forbidden(field.NewPath("value"), fmt.Sprintf(
		"the %s data engine can't be switched off while %s attached: %s; stop what uses %s, then try again",
		engine, while, catalog.Detail(attached), them)))
}

// refuseMissingClass: the API server refuses every pod of a class that does not exist.
func (v *Verdict) refuseMissingClass(name string, after SettingFacts) {
	if name == "" || slices.Contains(after.PriorityClasses, name) {
		return
	}
	v.refuse(ReasonNoSuchClass, field.Invalid(field.NewPath("value"), name, fmt.Sprintf(
		"there is no PriorityClass of that name (in this cluster: %s), and no pod of it would start; create it first", catalog.FirstOf(after.PriorityClasses))))
}
