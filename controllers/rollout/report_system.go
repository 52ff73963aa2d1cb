package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
// changes. So it is written seldom: when a phase begins or the blockers change.
func (r *Reconciler) reportSystem(ctx context.Context, values settings.Values, step settings.Step) error {
	var list longhorn.SettingList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Profile.Namespace)); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return fmt.Errorf("listing settings.longhorn.io: %w", err)
	}
	for i := range list.Items {
		setting := &list.Items[i]
		value, known := values[settings.Name(setting.Name)]
		if !known || !inDangerZone(setting.Name) || value.Source != settings.Source(r.Profile.Name) || value.Text != setting.Value {
			continue // not in force, or not the value that was judged
		}
		told, err := r.withOtherPods(ctx, setting, step)
		if err != nil {
			return err
		}
		if err := r.writeSystem(ctx, setting, told); err != nil {
			return err
		}
	}
	return nil
}

// withOtherPods adds what else storage-network is about: pods that the storage
// system restarts by itself.
func (r *Reconciler) withOtherPods(ctx context.Context, setting *longhorn.Setting, step settings.Step) (settings.Step, error) {
	if settings.Name(setting.Name) != settings.StorageNetwork || !step.Applied {
		return step, nil
	}
	others, err := r.Cached.OffStorageNetwork(ctx, setting.Value)
	if err != nil {
		return step, err
	}
	if len(others) > 0 {
		step.Applied, step.Phase = false, settings.PhaseWaiting
		step.Message = fmt.Sprintf("%s; the storage system has yet to restart %s: %s", step.Message, settings.Count(len(others), "pod"), others[0])
	}
	return step, nil
}

func (r *Reconciler) writeSystem(ctx context.Context, setting *longhorn.Setting, step settings.Step) error {
	applied := fmt.Sprintf("%s=%t", setting.Value, step.Applied)
	if setting.Annotations[AppliedAnnotation] == applied && setting.Status.Applied != step.Applied {
		r.standDown(setting, applied, step)
		return nil
	}
	if step.Phase == settings.PhaseRolling && setting.Annotations[PhaseAnnotation] == string(step.Phase) && len(step.Blockers) == 0 {
		step.Message = setting.Annotations[MessageAnnotation] // progress is in NetworkRollout
	}
	annotations := map[string]any{
		PhaseAnnotation: string(step.Phase), MessageAnnotation: step.Message, AppliedAnnotation: applied, BlockersAnnotation: nil,
	}
	if len(step.Blockers) > 0 {
		text, err := json.Marshal(apiBlockers(step.Blockers))
		if err != nil {
			return fmt.Errorf("writing blockers: %w", err)
		}
		annotations[BlockersAnnotation] = string(text)
	}
	changed := map[string]any{}
	for key, value := range annotations {
		have, ok := setting.Annotations[key]
		if (value == nil && ok) || (value != nil && have != value) {
			changed[key] = value
		}
	}
	if len(changed) > 0 {
		if err := r.merge(ctx, setting, false, map[string]any{"annotations": changed}, nil); err != nil {
			return err
		}
		r.Events.Eventf(setting, nil, corev1.EventTypeNormal, string(step.Phase), "Apply", "%s", step.Message)
	}
	if setting.Status.Applied != step.Applied {
		return r.merge(ctx, setting, true, nil, map[string]any{"applied": step.Applied})
	}
	return nil
}

// standDown leaves applied to the storage system, which wrote over it: to write
// it again would go on for ever. It holds for the setting until its value or
// what Fairlead has to say of it changes, and is said once.
func (r *Reconciler) standDown(setting *longhorn.Setting, applied string, step settings.Step) {
	if r.stoodDown == nil {
		r.stoodDown = map[string]string{}
	}
	if r.stoodDown[setting.Name] == applied {
		return
	}
	r.stoodDown[setting.Name] = applied
	r.Log.Info("leaving applied to the storage system, which wrote it otherwise",
		"setting", setting.Name, "value", setting.Value, "applied", setting.Status.Applied, "fairlead", step.Applied, "message", step.Message)
	r.Events.Eventf(setting, nil, corev1.EventTypeWarning, "StoodDown", "Apply",
		"the storage system says applied=%t, Fairlead %t: %s. Fairlead leaves the field alone", setting.Status.Applied, step.Applied, step.Message)
}

// merge patches only what is named, since the type here knows only a part of
// Longhorn's, and only the revision that was judged.
func (r *Reconciler) merge(ctx context.Context, setting *longhorn.Setting, subresource bool, metadata, status map[string]any) error {
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = setting.ResourceVersion
	change := map[string]any{"metadata": metadata}
	if status != nil {
		change["status"] = status
	}
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	patch := client.RawPatch(types.MergePatchType, data)
	// The patched revision comes back in setting, for the next write to it.
	if subresource {
		err = r.Client.Status().Patch(ctx, setting, patch)
	} else {
		err = r.Client.Patch(ctx, setting, patch)
	}
	if err != nil {
		return fmt.Errorf("reporting in setting %s: %w", setting.Name, err)
	}
	return nil
}
