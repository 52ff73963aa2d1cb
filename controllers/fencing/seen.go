package fencing

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// seenNode is the last state of a Node that the watch has shown since this controller began to lead.
type seenNode struct {
	bootID  string
	deleted bool
}

// errBehind: the watch has not shown the deletion of a Node yet.
var errBehind = errors.New("the watch of Nodes is behind")

// observeNodes keeps the last state of each Node. It passes all events. The watch shows each change, also between two
// looks of a controller that is busy.
func (r *Reconciler) observeNodes() predicate.Predicate {
	keep := func(o client.Object, deleted, unknown bool) bool {
		if node, ok := o.(*corev1.Node); ok {
			last := seenNode{node.Status.NodeInfo.BootID, deleted}
			if unknown { // the watch was interrupted: the Node may have changed before it went
				last.bootID = ""
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

// addLastBoot adds the boot that a deleted Node was last seen in.
func (r *Reconciler) addLastBoot(v *fencingreads.FenceView) error {
	if v.Node != nil || v.Facts.Replaced {
		return nil // a machine whose name another one has taken is given up by a person
	}
	last, _ := r.seen.Load(v.Facts.Node.Name)
	seen, known := last.(seenNode)
	if known && !seen.deleted {
		return errBehind
	}
	v.Facts.LastBoot = seen.bootID
	return nil
}

// views reads all machines of one node name.
func (r *Reconciler) views(ctx context.Context, from *fencingreads.FenceReader, node string) ([]*fencingreads.FenceView, error) {
	now := r.Clock.Now()
	r.started.CompareAndSwap(nil, &now)
	views, err := from.Views(ctx, node, now)
	for _, v := range views {
		v.Facts.Started = *r.started.Load()
		if behind := r.addLastBoot(v); behind != nil {
			return nil, behind
		}
	}
	return views, err
}
