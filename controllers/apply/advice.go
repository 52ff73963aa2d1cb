package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
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
	r.warn("UnknownSettings", catalog.UnknownMessage(unknown))
}

// adviseDuties reports once for each version of the storage system which duties differ from the
// table of versions.
func (r *Reconciler) adviseDuties(ctx context.Context) error {
	version, err := r.Cached.Version(ctx)
	if err != nil || version == "" {
		return err
	}
	row, known := longhorn.DutiesFor(r.Names.Versions, version)
	if !known {
		return nil
	}
	var differing []string
	for _, duty := range slices.Sorted(maps.Keys(row.Duties)) {
		if is := r.Duties[duty]; is != "" && is != row.Duties[duty] {
			differing = append(differing, fmt.Sprintf("%s is %s, not %s", duty, is, row.Duties[duty]))
		}
	}
	message := fmt.Sprintf("Longhorn %s %s; duties that are set otherwise than docs/reference/duties.md has them: %s", version, row.Does, strings.Join(differing, ", "))
	if len(differing) == 0 || !r.warned.IsNew("duties", message) {
		return nil
	}
	r.Log.Warn("duties are set otherwise than this version of the storage system asks for", "version", version, "differing", differing)
	r.warn("DutiesForVersion", message)
	return nil
}

// warn emits an event that concerns no single setting.
func (r *Reconciler) warn(reason, message string) {
	key := reads.RolloutKey(r.Names)
	rollout := &v1alpha1.NetworkRollout{}
	rollout.Namespace, rollout.Name = key.Namespace, key.Name
	r.Events.Eventf(rollout, nil, corev1.EventTypeWarning, reason, "Apply", "%s", kit.Note(message))
}
