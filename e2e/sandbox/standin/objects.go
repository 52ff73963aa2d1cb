package standin

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
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
	return l.patch(ctx, o, map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()}, "status": status})
}

// status changes fields of it, whatever else was changed meanwhile.
func (l Longhorn) status(ctx context.Context, kind, name string, status map[string]any) error {
	return l.patch(ctx, l.object(kind, name), map[string]any{"status": status})
}

// patch changes fields, of the status alone where there are such.
func (l Longhorn) patch(ctx context.Context, o *unstructured.Unstructured, fields map[string]any) error {
	text, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("changing %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	patch := client.RawPatch(types.MergePatchType, text)
	if _, status := fields["status"]; status {
		err = l.client.Status().Patch(ctx, o, patch)
	} else {
		err = l.client.Patch(ctx, o, patch)
	}
	if err != nil {
		return fmt.Errorf("changing %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

func (l Longhorn) object(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(longhorn.GroupVersion.WithKind(kind))
	o.SetNamespace(l.namespace)
	o.SetName(name)
	return o
}
