package mutators

import (
	"bytes"
	"encoding/json"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// pauseClients takes the rolling update of the clients from Kubernetes, which
// restarts clients whatever is mounted on their nodes. The controller restarts
// clients instead, node by node, and then gives the strategy back. The rule
// pauses the DaemonSet when another writer
//   - changes the template while mounts may live in the clients' network
//     namespaces. Networks do not count: the caller keeps them;
//   - gives the strategy back while the controller still restarts clients. The
//     writer's strategy is kept for later. A template that opts out is left alone.
//
// Source: longhorn-manager v1.12.0 controller/setting_controller.go,
// updateSystemManagedCSIComponentsResourceLimits, writes the template at once.
func pauseClients(ds ClientTemplate, old *ClientTemplate, underMounts bool) Result {
	if old == nil || ds.Spec.UpdateStrategy.Type == onDelete {
		return unchanged(ReasonAsItShouldBe, "")
	}
	var why string
	switch {
	case old.paused() && !ds.optsOut():
		why = "only Fairlead's controller gives the update strategy back"
	case underMounts && !sameButNetworks(ds.Spec.Template.raw, old.Spec.Template.raw):
		why = "a template that changed under mounts"
	default:
		return unchanged(ReasonAsItShouldBe, "")
	}
	strategy, err := json.Marshal(ds.Spec.UpdateStrategy)
	if err != nil {
		return unchanged(ReasonUnreadable, err.Error())
	}
	return mutated(ReasonPaused, why,
		annotate("/metadata", ds.Metadata.Annotations != nil, storage.StrategyAnnotation, string(strategy)),
		jsonpatch.NewOperation("add", "/spec/updateStrategy", map[string]string{"type": onDelete}),
	)
}

// paused tells whether Fairlead restarts the clients, as cluster.Pause writes it.
func (t *ClientTemplate) paused() bool {
	_, kept := t.Metadata.Annotations[storage.StrategyAnnotation]
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
	delete(annotations, storage.NetworksAnnotation)
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

// TemplateView is what is read of the clients' template, and its text, to see whether it changes.
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
