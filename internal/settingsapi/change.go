package settingsapi

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// change writes the value to the storage system's object of the setting if there is one, else to Fairlead's own.
// A conditional change is refused if the object is not as it was read.
func (c caller) change(ctx context.Context, s cluster.SettingState, value string, conditional bool) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Setting"))
	object.SetNamespace(c.profile.Namespace)
	object.SetName(string(s.Name))
	revision := ""
	switch {
	case s.System != nil:
		object.SetGroupVersionKind(longhorn.GroupVersion.WithKind("Setting"))
		revision = s.System.ResourceVersion
	case s.Own != nil:
		revision = s.Own.ResourceVersion
	default:
		object.Object["value"] = value
		return c.client.Create(ctx, object)
	}
	metadata := map[string]string{}
	if conditional {
		metadata["resourceVersion"] = revision
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "value": value})
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	return c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
