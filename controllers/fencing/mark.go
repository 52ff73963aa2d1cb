package fencing

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
)

// loss is what the Node should be marked with.
func (d decision) loss() string {
	if d.Unresolved {
		return ""
	}
	return fence.RecordedLoss(d.Facts.Node, d.Spec)
}

// needsMark reports whether the mark of the node's loss is to be written or removed.
func (d decision) needsMark() bool {
	return d.Facts.Here() && d.loss() != d.Facts.Node.RecordedLoss // else the Node belongs to another machine
}

// mark writes or removes the mark of the node's loss, if the Node is as it was read. A denial is no error: the mark is optional.
func (r *Reconciler) mark(ctx context.Context, d decision) error {
	if !d.needsMark() {
		return nil
	}
	name, loss := d.Facts.Node.Name, d.loss()
	var value any // null removes it
	if loss != "" {
		value = loss
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": d.Node.ResourceVersion, "annotations": map[string]any{fence.RecordedLossAnnotation: value},
	}})
	if err != nil {
		return fmt.Errorf("marking node %s: %w", name, err)
	}
	err = r.Client.Patch(ctx, d.Node.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsForbidden(err) {
		r.log(d).Debug("may not mark a node with its recorded loss: the component fencing-tainting gives the right", "error", err)
		return nil
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("marking node %s: %w", name, err)
	}
	return nil
}
