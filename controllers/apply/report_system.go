package apply

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// reportSystem writes `applied` of the storage system's own settings: true once a roll-out is
// complete and the storage system has given up, false while rollout.HoldsApplied holds it. It
// writes nothing else: any write makes every longhorn-manager sync the setting at once.
// Source: longhorn-manager controller/setting_controller.go, syncSetting: after three
// retries a setting waits for the next write, or for an hour.
func (r *Reconciler) reportSystem(ctx context.Context, facts planner.Facts, plans map[catalog.Name]planner.SettingPlan, t *reporting) {
	var list longhorn.SettingList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Names.Namespace)); err != nil {
		if !meta.IsNoMatchError(err) {
			t.add(fmt.Errorf("listing settings.longhorn.io: %w", err))
		}
		return
	}
	held := r.holdsApplied(facts)
	r.mayConfirmAgain(slices.ContainsFunc(facts.Rollout.Volumes, func(v rwx.Volume) bool { return v.Attached }))
	for i := range list.Items {
		setting := &list.Items[i]
		d, known := catalog.Lookup(setting.Name)
		plan := plans[d.Name]
		if !known || !d.DangerZone || d.ReadOnly || plan.Value.Source != catalog.SourceLonghorn || plan.Value.Text != setting.Value {
			continue // not in effect, or not the value that was judged
		}
		ofRWX := d.Gate == catalog.SharedVolumesDetached
		switch {
		// The sync of an RWX setting deletes instance managers that storage-network still waits for.
		case ofRWX && !plans[catalog.StorageNetwork].Built:
			if !plan.Applied { // a new roll-out: applied is written again at its end
				delete(r.confirmed, plan.Name)
			}
		case ofRWX && held != "":
			t.add(r.writeApplied(ctx, setting, false))
		case plan.Applied:
			t.add(r.writeApplied(ctx, setting, true))
		default:
			delete(r.confirmed, plan.Name)
		}
	}
}

// mayConfirmAgain allows one more write of storage-network's `applied` when the last volume is detached: while volumes are
// attached, Longhorn takes the write back, and looks again after an hour.
// Source: longhorn-manager v1.12.1; seen after its restart.
func (r *Reconciler) mayConfirmAgain(inUse bool) {
	if r.inUse && !inUse {
		delete(r.confirmed, catalog.StorageNetwork)
		delete(r.lastWrites, appliedOf(string(catalog.StorageNetwork)))
	}
	r.inUse = inUse
}

// appliedOf is what mayWrite knows the write of `applied` by.
func appliedOf(setting string) string { return "longhorn " + setting }

// writeApplied writes `applied` once for each value and roll-out: if Longhorn disagrees, the two
// must not write in turns.
func (r *Reconciler) writeApplied(ctx context.Context, setting *longhorn.Setting, applied bool) error {
	name := catalog.Name(setting.Name)
	value := fmt.Sprintf("%s=%s is %t", setting.UID, setting.Value, applied)
	if setting.Status.Applied == applied || r.confirmed[name] == value {
		return nil
	}
	what := appliedOf(setting.Name)
	if !r.mayWrite(what, value, eventEvery) {
		return nil // Longhorn's webhook may refuse the write each time
	}
	// A patch of one field of the version that was judged: the type here is only a part of Longhorn's.
	before := setting.DeepCopy()
	setting.Status.Applied = applied
	if err := r.Client.Status().Patch(ctx, setting, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		if kit.IsConflict(err) {
			delete(r.lastWrites, what) // nothing was written
		}
		return fmt.Errorf("writing applied of setting %s: %w", setting.Name, err)
	}
	if r.confirmed == nil {
		r.confirmed = map[catalog.Name]string{}
	}
	r.confirmed[name] = value
	return nil
}

// holdsApplied gathers the facts of rollout.HoldsApplied from those of the plan.
func (r *Reconciler) holdsApplied(facts planner.Facts) string {
	value, err := catalog.SharedVolumeNetwork(catalog.Resolve(nil, facts.SystemValues), r.Names)
	if err != nil {
		return "" // Longhorn reports invalid values
	}
	return rollout.HoldsApplied(value, facts.Rollout.Record, facts.Rollout.Services, facts.Rollout.Volumes)
}
