package fencing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/fence"
)

// boot that the node is to be marked with.
func (d decision) boot() string { return fence.FencedBoot(d.Facts.Node, d.Status) }

// marks tells whether the node's mark is to be written or taken away, and that may
// work: Fairlead may patch nodes only where it was given the right.
func (r *Reconciler) marks(d decision) bool {
	if d.Facts.Replaced {
		return false // the Node is another machine's
	}
	if d.Node == nil || d.boot() == d.Facts.Node.FencedBoot {
		r.unmarked.Delete(d.Facts.Node.Name)
		return false
	}
	since, denied := r.unmarked.Load(d.Facts.Node.Name)
	return !denied || d.Facts.Now.Sub(since.(unmarkedSince).at) >= refresh || since.(unmarkedSince).boot != d.boot()
}

// mark says on the Node that this boot of it is fenced, if the Node is as it was read.
func (r *Reconciler) mark(ctx context.Context, d decision) error {
	if d.boot() == "" || !r.marks(d) {
		return nil
	}
	return r.writeMark(ctx, d, map[string]any{
		"resourceVersion": d.Node.ResourceVersion, "annotations": map[string]any{fence.FencedBootAnnotation: d.boot()},
	})
}

// unmark takes the mark away of what is not fenced, or not any more: first of all, so
// that no fence is taken back while it stands. An error is only of one that counts,
// and where a fence is to be taken back: else it is tried again later.
func (r *Reconciler) unmark(ctx context.Context, d decision) error {
	n := d.Facts.Node
	if d.Node == nil || d.boot() != "" || n.FencedBoot == "" {
		return nil
	}
	stands := n.FencedBoot == n.Machine.BootID
	if !r.marks(d) && !(stands && d.letsIn()) {
		return nil
	}
	err := r.writeMark(ctx, d, map[string]any{"annotations": map[string]any{fence.FencedBootAnnotation: nil}})
	if _, denied := r.unmarked.Load(n.Name); err == nil && denied && stands && d.letsIn() {
		return fmt.Errorf("node %s is marked as fenced, and Fairlead may not take the mark away: kubectl annotate node %s %s-", n.Name, n.Name, fence.FencedBootAnnotation)
	}
	return err
}

// unmarkedSince is when a node could not be marked, and with what.
type unmarkedSince struct {
	at   time.Time
	boot string
}

// writeMark patches the Node. That Fairlead may not is no error: it is an option.
func (r *Reconciler) writeMark(ctx context.Context, d decision, metadata map[string]any) error {
	name := d.Facts.Node.Name
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("marking node %s: %w", name, err)
	}
	err = r.Client.Patch(ctx, d.Node.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsForbidden(err):
		if _, again := r.unmarked.Swap(name, unmarkedSince{d.Facts.Now, d.boot()}); !again {
			r.log(d).Info("may not mark a node with the boot that is fenced", "boot", d.boot(), "was", d.Facts.Node.FencedBoot, "error", err)
		}
		return nil
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("marking node %s: %w", name, err)
	}
	r.unmarked.Delete(name)
	r.log(d).Info("marked a node with the boot that is fenced", "boot", d.boot(), "was", d.Facts.Node.FencedBoot)
	return nil
}

// letsIn tells whether a fence is to be taken back.
func (d decision) letsIn() bool {
	return len(d.Unfence) > 0 || slices.ContainsFunc(d.Create, func(n fence.NetworkFence) bool { return n.Unfenced })
}

// withoutLettingIn is the decision, but no fence is taken back.
func (d decision) withoutLettingIn() decision {
	d.Unfence = nil
	d.Create = slices.DeleteFunc(slices.Clone(d.Create), func(n fence.NetworkFence) bool { return n.Unfenced })
	return d
}
