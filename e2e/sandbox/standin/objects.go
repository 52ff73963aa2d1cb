package standin

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// text is a field of an object, empty where it has none.
func text(o *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

// listOf is an empty list of one of Longhorn's kinds.
func listOf(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(longhorn.GroupVersion.WithKind(kind + "List"))
	return list
}

func (l Longhorn) list(ctx context.Context, kind string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := listOf(kind)
	if err := l.client.List(ctx, list, append(options, client.InNamespace(l.namespace))...); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind, err)
	}
	return list.Items, nil
}

// create leaves alone what is there already.
func (l Longhorn) create(ctx context.Context, o client.Object) error {
	if err := l.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// updateStatus fails with a conflict where somebody was faster: what is written
// follows from what was read.
func (l Longhorn) updateStatus(ctx context.Context, o *unstructured.Unstructured, status map[string]any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()}, "status": status,
	})
	if err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if err := l.client.Status().Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// patchSpec changes fields, whatever else was changed meanwhile.
func (l Longhorn) patchSpec(ctx context.Context, o *unstructured.Unstructured, spec map[string]any) error {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return fmt.Errorf("changing %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if err := l.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("changing %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}
