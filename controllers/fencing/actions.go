package fencing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// do carries out a decision. An action that fails stops no other.
func (r *Reconciler) do(ctx context.Context, d decision) error {
	if d.Forget {
		return r.forget(ctx, d)
	}
	if len(d.Create)+len(d.Unfence) > 0 || d.RemoveTaint {
		if err := r.asJudged(ctx, d); err != nil {
			return err
		}
	}
	var problems []error
	for _, n := range d.Create {
		problems = append(problems, r.create(ctx, d, n))
	}
	for _, n := range d.Unfence {
		problems = append(problems, r.unfence(ctx, d, n))
	}
	for _, n := range d.Delete {
		problems = append(problems, r.remove(ctx, d, n))
	}
	if d.RemoveTaint && d.Node != nil {
		problems = append(problems, r.removeTaint(ctx, d, d.Node.DeepCopy()))
	}
	return joinProblems(append(problems, r.mark(ctx, d)))
}

// joinProblems joins errors. Writes that were overtaken count only if there is no other error:
// they lead to another look.
func joinProblems(problems []error) error {
	real := slices.DeleteFunc(slices.Clone(problems), func(err error) bool { return err == nil || isOvertaken(err) })
	if len(real) > 0 {
		return errors.Join(real...)
	}
	if i := slices.IndexFunc(problems, func(err error) bool { return err != nil }); i >= 0 {
		return problems[i]
	}
	return nil
}

// errChanged: the Node is not as it was when it was judged. The change is an event.
var errChanged = errors.New("the Node has changed")

// asJudged reads the Node right before Fairlead takes anything from the node or gives anything back: the record was written meanwhile.
func (r *Reconciler) asJudged(ctx context.Context, d decision) error {
	was, now := d.Facts.Node, fence.Node{}
	node := &corev1.Node{}
	err := r.API.Get(ctx, client.ObjectKey{Name: was.Name}, node)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading node %s: %w", was.Name, err)
	}
	if err == nil {
		now = fencingreads.FenceNode(node)
	}
	last, err := r.lastDeletion(was.Name, now.Exists)
	if err != nil {
		return err
	}
	if now.Exists != was.Exists || last.UID != d.Facts.Deleted.UID || now.UID != was.UID || now.Boot != was.Boot || now.Ready != was.Ready || now.OutOfService != was.OutOfService {
		return errChanged
	}
	return nil
}

func (r *Reconciler) create(ctx context.Context, d decision, n fence.NetworkFence) error {
	if err := r.Client.Create(ctx, fencingreads.NetworkFenceObject(n)); err != nil {
		return fmt.Errorf("creating NetworkFence %s: %w", n.Name, err)
	}
	r.log(d).Info("NetworkFence created", "networkFence", n.Name, "cidrs", n.CIDRs, "unfenced", n.Unfenced)
	return nil
}

// unfence asks csi-addons to unfence. Deleting the NetworkFence would not.
func (r *Reconciler) unfence(ctx context.Context, d decision, n fence.NetworkFence) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": n.ResourceVersion},
		"spec":     map[string]any{"fenceState": csiaddons.Unfenced},
	})
	if err != nil {
		return fmt.Errorf("unfencing by NetworkFence %s: %w", n.Name, err)
	}
	object := &csiaddons.NetworkFence{}
	object.Name = n.Name
	err = r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("unfencing by NetworkFence %s: %w", n.Name, err)
	}
	r.log(d).Info("asked to unfence", "networkFence", n.Name, "cidrs", n.CIDRs)
	return nil
}

func (r *Reconciler) remove(ctx context.Context, d decision, n fence.NetworkFence) error {
	object := &csiaddons.NetworkFence{}
	object.Name = n.Name
	err := r.Client.Delete(ctx, object, client.Preconditions{ResourceVersion: &n.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NetworkFence %s: %w", n.Name, err)
	}
	r.log(d).Info("deleted a NetworkFence", "networkFence", n.Name)
	return nil
}

// removeTaint removes the taint that Fairlead has written, and no other.
func (r *Reconciler) removeTaint(ctx context.Context, d decision, node *corev1.Node) error {
	before := node.DeepCopy()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == fence.OutOfServiceTaint && t.Value == fence.OwnTaintValue
	})
	if len(node.Spec.Taints) == len(before.Spec.Taints) {
		return nil
	}
	if err := r.Client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("removing Fairlead's taint from node %s: %w", node.Name, err)
	}
	r.log(d).Info("removed Fairlead's taint from a node", "taint", fence.OutOfServiceTaint)
	return nil
}
