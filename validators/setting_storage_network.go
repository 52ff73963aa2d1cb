package validators

import (
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

// warnUnrestarted says that an RWX network setting restarts no instance manager. Longhorn's sync of the setting deletes the
// instance managers that storage-network waits for; ValidateInstanceManagerDeletion keeps those in use.
func (v *Verdict) warnUnrestarted(d catalog.Definition, plan plan.Plan, system string) {
	if d.Gate != catalog.SharedVolumesDetached {
		return
	}
	_, later := plan.WorkFor(catalog.StorageNetwork)
	inUse := 0
	for _, work := range later {
		if work.Component.Kind == catalog.InstanceManager && len(work.Component.Uses) > 0 {
			inUse++
		}
	}
	if inUse > 0 {
		v.warn("%s still waits for %s in use: the change restarts none of them, since Fairlead's webhook stops %s from deleting their pods",
			catalog.StorageNetwork, catalog.Count(inUse, "instance manager"), system)
	}
}
