package fence

import "time"

// lookForCSIAddons is how often to look again while csi-addons is not installed.
const lookForCSIAddons = 30 * time.Second

// withoutCSIAddons warns that no fence can be requested where the cluster has no NetworkFences.
func (f Facts) withoutCSIAddons(step *Step) {
	if !f.NoCSIAddons || len(step.Create)+len(step.Unfence)+len(step.Delete) == 0 {
		return
	}
	step.Create, step.Unfence, step.Delete = nil, nil, nil
	step.warn(step.Status.Phase, ReasonNoCSIAddons, "the cluster has no NetworkFences, so no fence can be requested: install csi-addons; or fence the node by hand and release its volumes: "+
		f.command(GateAttach))
	step.After = lookForCSIAddons
}
