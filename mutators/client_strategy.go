package mutators

import (
	"bytes"
	"encoding/json"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// pauseClients switches off Kubernetes' rolling update of the clients, which ignores mounts. The controller restarts the
// clients node by node, and then restores the update strategy. The rule pauses the DaemonSet if another writer
//   - changes the template while mounts may live in the clients' network namespaces. Networks do not count: the caller
//     keeps them;
//   - restores the strategy while the controller still restarts clients, unless the template opts out. The writer's
//     strategy is kept for later.
//
// Source: longhorn-manager v1.12.0 controller/setting_controller.go,
// updateSystemManagedCSIComponentsResourceLimits, writes the template at once.
func pauseClients(ds ClientTemplate, old *ClientTemplate, underMounts bool) Result {
	if old == nil || ds.Spec.UpdateStrategy.Type == onDelete {
		return unchanged(ReasonUpToDate, "")
	}
	var why string
	switch {
	case old.paused() && !ds.optsOut():
		why = "only Fairlead's controller restores the update strategy"
	case underMounts && !sameButNetworks(ds.Spec.Template.raw, old.Spec.Template.raw):
		why = "the template changed under mounts"
	default:
		return unchanged(ReasonUpToDate, "")
	}
	strategy, err := json.Marshal(ds.Spec.UpdateStrategy)
	if err != nil {
		return unchanged(ReasonUnreadable, err.Error())
	}
	return mutated(ReasonPaused, why,
		annotate("/metadata", ds.Metadata.Annotations != nil, rwx.StrategyAnnotation, string(strategy)),
		jsonpatch.NewOperation("add", "/spec/updateStrategy", map[string]string{"type": onDelete}),
	)
}

// paused reports whether Fairlead restarts the clients, see reads.Pause.
func (t *ClientTemplate) paused() bool {
	_, kept := t.Metadata.Annotations[rwx.StrategyAnnotation]
	return kept && t.Spec.UpdateStrategy.Type == onDelete
}

func (t *ClientTemplate) optsOut() bool {
	annotations := t.Spec.Template.Metadata.Annotations
	return annotations != nil && annotations.OptOut == "true"
}

// sameButNetworks compares two templates without their networks annotation.
func sameButNetworks(a, b []byte) bool {
	return bytes.Equal(a, b) || reflect.DeepEqual(withoutNetworks(a), withoutNetworks(b))
}

func withoutNetworks(raw []byte) map[string]any {
	var template map[string]any
	if err := json.Unmarshal(raw, &template); err != nil {
		return map[string]any{"unreadable": string(raw)}
	}
	metadata, _ := template["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, multus.NetworksAnnotation)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return template
}

const onDelete = "OnDelete"

// UpdateStrategy of a DaemonSet.
type UpdateStrategy struct {
	Type          string          `json:"type,omitempty"`
	RollingUpdate json.RawMessage `json:"rollingUpdate,omitempty"`
}

// TemplateView is the view of the clients' template. Its text shows whether the template changes.
type TemplateView struct {
	Metadata Metadata `json:"metadata"`
	Spec     PodSpec  `json:"spec"`
	raw      []byte
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *TemplateView) UnmarshalJSON(data []byte) error {
	type view TemplateView
	if err := jsonv2.Unmarshal(data, (*view)(t)); err != nil {
		return err
	}
	t.raw = bytes.Clone(data)
	return nil
}
