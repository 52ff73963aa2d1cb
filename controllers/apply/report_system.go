package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cluster"
	"github.com/fairlead-io/fairlead/cluster/longhorn"
	"github.com/fairlead-io/fairlead/settings"
)

// Annotations on the storage system's own settings, which have no room for more
// than `applied` in their status.
const (
	PhaseAnnotation    = "fairlead.io/phase"
	MessageAnnotation  = "fairlead.io/message"
	BlockersAnnotation = "fairlead.io/blockers"
	// AppliedAnnotation is `<value>=<applied>` as Fairlead last wrote it: another
	// status for the same value was written by the storage system.
	AppliedAnnotation = "fairlead.io/applied"
)

// reportSystem writes applied, and annotations that kubectl describe shows, to
// those of the storage system's own settings whose value is in force.
//
// Longhorn syncs a setting, and writes applied, whenever anything in it
// changes. So it is written seldom: when a phase begins, or the blockers change
// and it was not written for a while, and not at all where there never was
// anything to tell.
func (r *Reconciler) reportSystem(ctx context.Context, plans map[settings.Name]settings.SettingPlan, t *telling) {
	var list longhorn.SettingList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Profile.Namespace)); err != nil {
		if !meta.IsNoMatchError(err) {
			t.add(fmt.Errorf("listing settings.longhorn.io: %w", err))
		}
		return
	}
	for i := range list.Items {
		setting := &list.Items[i]
		d, known := settings.Lookup(setting.Name)
		plan := plans[d.Name]
		if settings.ReadOnly(setting.Name) {
			continue // Longhorn's webhook refuses any write, annotations included
		}
		if known && plan.Value.Source == settings.SourceFairlead {
			t.add(r.closeRequest(ctx, setting))
		}
		if !known || !d.DangerZone || plan.Value.Source != settings.Source(r.Profile.Name) || plan.Value.Text != setting.Value {
			continue // not in force, or not the value that was judged
		}
		if d.Gate == settings.SharedVolumesDetached && !restarted(plans[settings.StorageNetwork]) {
			continue
		}
		if _, told := setting.Annotations[PhaseAnnotation]; told || !plan.Applied || !setting.Status.Applied {
			t.add(r.writeSystem(ctx, setting, plan)) // Longhorn judges the value again at every write
		}
		t.add(r.closeOverride(ctx, setting, plan))
	}
}

// restarted tells whether every component is on the storage network, but for
// those that a lost node took along. While one is not, the RWX settings of Longhorn are not touched: Longhorn syncs a setting
// whenever it is written to, and its sync of an RWX setting deletes
// instance-manager pods that storage-network still waits for, in use or not.
func restarted(storageNetwork settings.SettingPlan) bool {
	return storageNetwork.Built
}

// writeSystem writes applied first: then AppliedAnnotation never speaks of a
// write that a crash has kept from being made.
func (r *Reconciler) writeSystem(ctx context.Context, setting *longhorn.Setting, plan settings.SettingPlan) error {
	applied := fmt.Sprintf("%s=%t", setting.Value, plan.Applied)
	otherwise := setting.Status.Applied != plan.Applied
	if otherwise && setting.Annotations[AppliedAnnotation] == applied {
		r.standDown(setting, applied, plan)
		otherwise = false
	}
	if (plan.Phase == settings.PhaseRolling || plan.Phase == settings.PhaseRestarting) && setting.Annotations[PhaseAnnotation] == string(plan.Phase) {
		plan.Message, plan.Blockers = setting.Annotations[MessageAnnotation], nil // progress is in Fairlead's own settings
	}
	annotations := map[string]any{
		PhaseAnnotation: string(plan.Phase), MessageAnnotation: plan.Message, AppliedAnnotation: applied, BlockersAnnotation: nil,
	}
	if len(plan.Blockers) > 0 {
		text, err := json.Marshal(cluster.Blockers(plan.Blockers))
		if err != nil {
			return fmt.Errorf("writing blockers: %w", err)
		}
		annotations[BlockersAnnotation] = string(text)
	}
	maps.DeleteFunc(annotations, func(key string, value any) bool {
		have, ok := setting.Annotations[key]
		return value == nil && !ok || ok && value == have
	})
	what := "longhorn " + setting.Name
	if !otherwise && len(annotations) == 0 || !r.due(what, applied+" "+string(plan.Phase), tellEvery) {
		return nil
	}
	var err error
	if otherwise {
		err = r.writeApplied(ctx, setting, plan.Applied)
	}
	if err == nil {
		err = r.annotate(ctx, setting, annotations, plan)
	}
	if apierrors.IsConflict(err) {
		delete(r.paces, what) // nothing was written
	}
	return err
}

// writeApplied writes the one field, since the type here knows only a part of
// Longhorn's, and only into the revision that was judged.
func (r *Reconciler) writeApplied(ctx context.Context, setting *longhorn.Setting, applied bool) error {
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"status":{"applied":%t}}`, setting.ResourceVersion, applied)
	if err := r.Client.Status().Patch(ctx, setting, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("writing applied of setting %s: %w", setting.Name, err)
	}
	return nil
}

// annotate writes them whatever Longhorn has made of applied meanwhile: else
// the two could write for ever.
func (r *Reconciler) annotate(ctx context.Context, setting *longhorn.Setting, annotations map[string]any, plan settings.SettingPlan) error {
	if len(annotations) == 0 {
		return nil
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	if err := r.Client.Patch(ctx, setting, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("reporting in setting %s: %w", setting.Name, err)
	}
	r.Events.Eventf(setting, nil, corev1.EventTypeNormal, string(plan.Phase), "Apply", "%s", clipped(plan.Message))
	return nil
}

// standDown leaves applied, and that field alone, to the storage system, which wrote
// over it: to write it again would go on for ever. It holds for the setting until its value or
// what Fairlead has to say of it changes, and is said once.
func (r *Reconciler) standDown(setting *longhorn.Setting, applied string, plan settings.SettingPlan) {
	if !r.sayOnce("applied of "+setting.Name, applied) {
		return
	}
	r.Log.Info("leaving applied to the storage system, which wrote it otherwise",
		"setting", setting.Name, "value", setting.Value, "applied", setting.Status.Applied, "fairlead", plan.Applied, "message", plan.Message)
	r.Events.Eventf(setting, nil, corev1.EventTypeWarning, "StoodDown", "Apply",
		"the storage system says applied=%t, Fairlead %t: %s. Fairlead leaves the field alone", setting.Status.Applied, plan.Applied, plan.Message)
}
