package validators

import (
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

// warnKept says what an RWX network setting does not restart. Longhorn's sync of one also deletes the instance
// managers that storage-network waits for, in use or not; ValidateInstanceManagerDeletion refuses those in use.
func (v *Verdict) warnKept(d catalog.Definition, plan plan.Plan, system string) {
	if d.Gate != catalog.SharedVolumesDetached {
		return
	}
	_, later := plan.For(catalog.StorageNetwork)
	inUse := 0
	for _, work := range later {
		if work.Component.Kind == catalog.InstanceManager && len(work.Component.Uses) > 0 {
			inUse++
		}
	}
	if inUse > 0 {
		v.warn("%s still waits for %s in use: this change restarts none of them (Fairlead's webhook refuses that to %s)",
			catalog.StorageNetwork, catalog.Count(inUse, "instance manager"), system)
	}
}
