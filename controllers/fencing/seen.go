package fencing

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// seenNode is the last state of a Node that the watch has shown since this controller began to lead.
type seenNode struct {
	fence.Deletion
	deleted bool
}

// errBehind: the watch has not shown the deletion of a Node yet.
var errBehind = errors.New("the watch of Nodes is behind")

// observeNodes keeps the last state of each Node. It passes all events. The watch shows each change, also between two
// looks of a controller that is busy.
func (r *Reconciler) observeNodes() predicate.Predicate {
	keep := func(o client.Object, deleted, unknown bool) bool {
		if node, ok := o.(*corev1.Node); ok {
			n := fencingreads.FenceNode(node)
			last := seenNode{fence.Deletion{UID: n.UID, Boot: n.Boot, ReadyChanged: n.ReadyChanged, At: r.Clock.Now()}, deleted}
			if unknown { // the watch was interrupted: the Node may have changed before it went
				last.Deletion = fence.Deletion{At: last.At}
			}
			r.seen.Store(node.Name, last)
		}
		return true
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return keep(e.Object, false, false) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return keep(e.ObjectNew, false, false) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return keep(e.Object, true, e.DeleteStateUnknown) },
		GenericFunc: func(event.GenericEvent) bool { return true },
	}
}

// forgetDeleted drops a deleted Node of which nothing is on record.
func (r *Reconciler) forgetDeleted(node string) {
	if last, known := r.seen.Load(node); known && last.(seenNode).deleted {
		r.seen.CompareAndDelete(node, last)
	}
}

// views reads all boots of one node name.
func (r *Reconciler) views(ctx context.Context, from *fencingreads.FenceReader, node string) ([]*fencingreads.FenceView, error) {
	now := r.Clock.Now()
	r.started.CompareAndSwap(nil, &now)
	views, err := from.Views(ctx, node, now, r.lastDeletion)
	for _, v := range views {
		v.Facts.Started = *r.started.Load()
	}
	if err == nil {
		r.hear(node, views)
	}
	return views, err
}

// lastDeletion is how a Node was last seen deleted; empty if this controller did not see that.
func (r *Reconciler) lastDeletion(node string, exists bool) (fence.Deletion, error) {
	last, _ := r.seen.Load(node)
	seen, known := last.(seenNode)
	if exists {
		return fence.Deletion{}, nil
	}
	if known && !seen.deleted {
		return fence.Deletion{}, errBehind
	}
	return seen.Deletion, nil
}
