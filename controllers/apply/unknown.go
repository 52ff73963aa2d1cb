package apply

import (
	"fmt"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// warnUnknown counts the storage system's settings that Fairlead does not know, and reports each
// set of them once: a later version may have them in its danger zone.
func (r *Reconciler) warnUnknown(system map[catalog.Name]string) {
	unknown := catalog.Unknown(system)
	r.metrics.unknown.Set(float64(len(unknown)))
	if len(unknown) == 0 || !r.warned.IsNew("unknown", fmt.Sprint(unknown)) {
		return
	}
	r.Log.Warn("the storage system has settings that this Fairlead does not know", "settings", unknown)
	r.warn("UnknownSettings", catalog.UnknownMessage(r.Profile.Name, unknown))
}
