package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/settings"
)

// reportSystem turns `applied` of the storage system's own settings true, where a
// roll-out is complete and the storage system has given up on it, and false while
// settings.HoldsApplied says so. Nothing else is written there: any write makes
// every longhorn-manager sync the setting at once.
// Source: longhorn-manager controller/setting_controller.go, syncSetting: after three
// retries a setting waits for the next write, or for an hour.
func (r *Reconciler) reportSystem(ctx context.Context, facts settings.Facts, plans map[settings.Name]settings.SettingPlan, t *telling) {
	var list longhorn.SettingList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Profile.Namespace)); err != nil {
		if !meta.IsNoMatchError(err) {
			t.add(fmt.Errorf("listing settings.longhorn.io: %w", err))
		}
		return
	}
	held := r.holdsApplied(facts)
	for i := range list.Items {
		setting := &list.Items[i]
		d, known := settings.Lookup(setting.Name)
		plan := plans[d.Name]
		if settings.ReadOnly(setting.Name) {
			continue // Longhorn's webhook refuses any write, annotations included
		}
		if !known || !d.DangerZone || plan.Value.Source != settings.Source(r.Profile.Name) || plan.Value.Text != setting.Value {
			continue // not in force, or not the value that was judged
		}
		// The sync of an RWX setting deletes instance managers that storage-network still waits for.
		if d.Gate == settings.SharedVolumesDetached && !plans[settings.StorageNetwork].Built {
			continue
		}
		if d.Gate == settings.SharedVolumesDetached && held != "" {
			t.add(r.hold(ctx, setting))
			continue
		}
		t.add(r.confirm(ctx, setting, plan))
	}
}

// confirm writes `applied: true`, once for each roll-out: if Longhorn then writes
// false, it sees something that is not applied, and the two must not write in turns.
func (r *Reconciler) confirm(ctx context.Context, setting *longhorn.Setting, plan settings.SettingPlan) error {
	if !plan.Applied {
		delete(r.confirmed, plan.Name)
		return nil
	}
	if setting.Status.Applied || r.confirmed[plan.Name] == confirmation(setting) {
		return nil
	}
	what := "longhorn " + setting.Name
	if !r.due(what, confirmation(setting), tellEvery) {
		return nil // Longhorn's webhook may refuse it each time
	}
	// Only the one field, since the type here has only a part of Longhorn's, and only into the revision that was judged.
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"applied":true}}`, setting.ResourceVersion)
	if err := r.Client.Status().Patch(ctx, setting, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		if apierrors.IsConflict(err) {
			delete(r.paces, what) // nothing was written
		}
		return fmt.Errorf("writing applied of setting %s: %w", setting.Name, err)
	}
	if r.confirmed == nil {
		r.confirmed = map[settings.Name]string{}
	}
	r.confirmed[plan.Name] = confirmation(setting)
	return nil
}

// holdsApplied gathers the facts of settings.HoldsApplied from those of the plan.
func (r *Reconciler) holdsApplied(facts settings.Facts) string {
	value, err := settings.SharedVolumeNetwork(settings.Resolve(nil, facts.SystemValues, r.Profile.Name), r.Profile)
	if err != nil {
		return "" // a value that can't be read is Longhorn's to complain about
	}
	return settings.HoldsApplied(value, facts.Rollout.Record, facts.Rollout.Services, facts.Rollout.Volumes)
}

// hold writes `applied: false`, once for each value: the webhook keeps Longhorn from
// turning it true again, and without the webhook the two would write in turns.
func (r *Reconciler) hold(ctx context.Context, setting *longhorn.Setting) error {
	name := settings.Name(setting.Name)
	if !setting.Status.Applied || r.confirmed[name] == heldBack+confirmation(setting) {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"applied":false}}`, setting.ResourceVersion)
	if err := r.Client.Status().Patch(ctx, setting, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("writing applied of setting %s: %w", setting.Name, err)
	}
	if r.confirmed == nil {
		r.confirmed = map[settings.Name]string{}
	}
	r.confirmed[name] = heldBack + confirmation(setting)
	return nil
}

// heldBack marks in Reconciler.confirmed what was written as not applied.
const heldBack = "not yet "

// confirmation is what was confirmed: this value of this object.
func confirmation(setting *longhorn.Setting) string { return string(setting.UID) + "=" + setting.Value }
