package workloads

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// left is a pod with a dead mount that is not restarted, and the reason.
type left struct {
	reason string
	mount  v1alpha1.DeadMount
}

// leave reports a pod with a dead mount that is not restarted.
func (r *Reconciler) leave(n *node, pod *corev1.Pod, w storage.Workload, v storage.Verdict, policy storage.Restarts) {
	r.report(n, pod, v)
	n.left[pod.UID] = left{v.Reason, v1alpha1.DeadMount{
		Pod: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName, Volumes: storage.Lost(w, policy), Message: v.Detail,
	}}
}

// record keeps the dead mounts of a node in the NetworkRollout. An event about them is gone after an hour.
func (r *Reconciler) record(ctx context.Context, node string, pods map[types.UID]left) error {
	var dead []v1alpha1.DeadMount
	for _, l := range pods {
		dead = append(dead, l.mount)
	}
	object, err := r.Cached.RolloutObject(ctx)
	if err != nil || reflect.DeepEqual(object.Status.DeadMounts, withDeadMounts(object.Status.DeadMounts, node, dead)) {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var live v1alpha1.NetworkRollout
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), &live); err != nil {
			return err
		}
		all := withDeadMounts(live.Status.DeadMounts, node, dead)
		if reflect.DeepEqual(live.Status.DeadMounts, all) {
			return nil
		}
		live.Status.DeadMounts = all
		return r.Client.Status().Update(ctx, &live)
	})
	if err != nil {
		return fmt.Errorf("recording dead mounts on node %s: %w", node, err)
	}
	return nil
}

// withDeadMounts replaces the dead mounts of a node. Those of other nodes come first if there are too many.
func withDeadMounts(recorded []v1alpha1.DeadMount, node string, dead []v1alpha1.DeadMount) []v1alpha1.DeadMount {
	all := slices.DeleteFunc(slices.Clone(recorded), func(d v1alpha1.DeadMount) bool { return d.Node == node })
	slices.SortFunc(dead, func(a, b v1alpha1.DeadMount) int { return cmp.Compare(a.Pod, b.Pod) })
	all = append(all, dead[:min(len(dead), v1alpha1.MaxListed-len(all))]...)
	slices.SortStableFunc(all, func(a, b v1alpha1.DeadMount) int { return cmp.Compare(a.Node, b.Node) })
	if len(all) == 0 {
		return nil
	}
	return all
}
