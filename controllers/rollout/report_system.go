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
)

// reportSystem writes applied, and annotations that kubectl describe shows, to
// the storage system's own settings.
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
		if !known {
			continue
		}
		told, err := r.asSeenBy(ctx, setting, value, step)
		if err != nil {
			return err
		}
		if err := r.writeSystem(ctx, setting, told); err != nil {
			return err
		}
	}
	return nil
}

// asSeenBy adjusts the step to what is true of one setting of the storage
// system: it may be overridden, and storage-network is also about pods that the
// storage system restarts by itself.
func (r *Reconciler) asSeenBy(ctx context.Context, setting *longhorn.Setting, value settings.Value, step settings.Step) (settings.Step, error) {
	if value.Source == settings.SourceFairlead && value.Text != setting.Value {
		step.Applied, step.Phase = false, settings.PhaseOverridden
		step.Message = fmt.Sprintf("settings.fairlead.io %s says %q and wins", setting.Name, value.Text)
		step.Blockers = []settings.Blocker{{Kind: settings.BlockedBySetting, Name: setting.Name, Message: step.Message}}
		return step, nil
	}
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
	annotations := map[string]any{PhaseAnnotation: string(step.Phase), MessageAnnotation: step.Message, BlockersAnnotation: nil}
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
	told := setting.Annotations[PhaseAnnotation] != string(step.Phase) || setting.Annotations[MessageAnnotation] != step.Message
	if len(changed) > 0 {
		if err := r.merge(ctx, setting, false, map[string]any{"metadata": map[string]any{"annotations": changed}}); err != nil {
			return err
		}
	}
	if setting.Status.Applied != step.Applied {
		if err := r.merge(ctx, setting, true, map[string]any{"status": map[string]any{"applied": step.Applied}}); err != nil {
			return err
		}
	}
	if told {
		r.Events.Eventf(setting, nil, corev1.EventTypeNormal, string(step.Phase), "Apply", "%s", step.Message)
	}
	return nil
}

// merge patches only what is named: the type here knows only a part of Longhorn's.
func (r *Reconciler) merge(ctx context.Context, setting *longhorn.Setting, status bool, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	patch, target := client.RawPatch(types.MergePatchType, data), setting.DeepCopy()
	if status {
		err = r.Client.Status().Patch(ctx, target, patch)
	} else {
		err = r.Client.Patch(ctx, target, patch)
	}
	if err != nil {
		return fmt.Errorf("reporting in setting %s: %w", setting.Name, err)
	}
	return nil
}
