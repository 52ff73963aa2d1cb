package mutators

import (
	"bytes"
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/storage"
)

// pauseClients takes the rolling update of the clients from Kubernetes when
// somebody else changes their template while they are on a network: it would
// restart them with no look at what is mounted on their nodes, and a mount dies
// with the network namespace of its client. The controller restarts them
// instead, node by node, and gives the strategy back.
//
// Source: longhorn-manager v1.12.0 controller/setting_controller.go,
// updateSystemManagedCSIComponentsResourceLimits, writes the template at once.
func pauseClients(ds ClientTemplate, old *ClientTemplate) Result {
	if old == nil || bytes.Equal(ds.Spec.Template.raw, old.Spec.Template.raw) || ds.Spec.UpdateStrategy.Type == onDelete {
		return unchanged(ReasonAsItShouldBe, "")
	}
	strategy, err := json.Marshal(ds.Spec.UpdateStrategy)
	if err != nil {
		return unchanged(ReasonUnreadable, err.Error())
	}
	return mutated(ReasonPaused, "a template that changed under mounts",
		annotate("/metadata", ds.Metadata.Annotations != nil, storage.StrategyAnnotation, string(strategy)),
		jsonpatch.NewOperation("add", "/spec/updateStrategy", map[string]string{"type": onDelete}),
	)
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
