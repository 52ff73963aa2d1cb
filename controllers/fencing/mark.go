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

// loss that the Node is to be marked with.
func (d decision) loss() string {
	if d.Unresolved {
		return ""
	}
	return fence.RecordedLoss(d.Facts.Node, d.Status)
}

// marks tells whether the mark of the node's loss is to be written or removed, and that may
// work: Fairlead may patch nodes only where it was given the right.
func (r *Reconciler) marks(d decision) bool {
	if d.Node == nil || d.Facts.Replaced || d.loss() == d.Facts.Node.RecordedLoss {
		return false // it is so, or the Node is another machine's
	}
	denied := r.denied.Load()
	return denied == nil || d.Facts.Now.Sub(*denied) >= refresh
}

// mark the Node with its loss, if it is as it was read, or remove the mark. That Fairlead may not is no error: it is an option.
func (r *Reconciler) mark(ctx context.Context, d decision) error {
	if !r.marks(d) {
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
	switch {
	case apierrors.IsForbidden(err):
		if was := r.denied.Swap(&d.Facts.Now); was == nil {
			r.log(d).Info("may not mark nodes with the loss that is on record: the component fencing-tainting gives the right", "error", err)
		}
		return nil
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("marking node %s: %w", name, err)
	}
	r.denied.Store(nil)
	return nil
}
