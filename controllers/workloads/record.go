package workloads

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// leave reports a pod with a dead mount that is not restarted.
func (r *Reconciler) leave(n *node, pod *corev1.Pod, w rwx.Workload, v rwx.Verdict, policy rwx.Restarts) {
	r.report(n, pod, v)
	n.left[pod.UID] = v1alpha1.DeadMount{
		Pod: pod.Namespace + "/" + pod.Name, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Volumes: rwx.Lost(w, policy), Reason: v.Reason, Message: kit.Note(v.Detail),
	}
}

// record keeps the dead mounts of a node in the NetworkRollout. An event about them is gone after an hour.
func (r *Reconciler) record(ctx context.Context, node string, pods map[types.UID]v1alpha1.DeadMount) error {
	r.recording.Lock() // nodes have several workers, and one object
	defer r.recording.Unlock()
	var dead []v1alpha1.DeadMount
	for _, d := range pods {
		dead = append(dead, d)
	}
	object, err := r.Cached.RolloutObject(ctx)
	if err != nil {
		return err
	}
	last, written := r.recorded[node] // which the cache may not have yet
	if cached := object.Status.DeadMounts; (!written || maps.Equal(last, reasons(pods))) && reflect.DeepEqual(cached, withDeadMounts(cached, node, dead)) {
		return nil
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
	r.recorded[node] = reasons(pods)
	return nil
}

// recordGone forgets the dead mounts of a node that is gone. On a node that only lacks a client, mounts stay dead.
func (r *Reconciler) recordGone(ctx context.Context, node string) error {
	if boot, err := r.Cached.BootID(ctx, node); err != nil || boot != "" {
		return err
	}
	return r.record(ctx, node, nil)
}

// reasons of dead mounts, by pod.
func reasons(pods map[types.UID]v1alpha1.DeadMount) map[types.UID]string {
	all := map[types.UID]string{}
	for uid, d := range pods {
		all[uid] = d.Reason
	}
	return all
}

// withDeadMounts replaces the dead mounts of a node. If the list is full, entries of other nodes stay, and entries of
// this node are cut. An entry whose pod and reason stay keeps its message: the API server's words may change each time.
func withDeadMounts(recorded []v1alpha1.DeadMount, node string, dead []v1alpha1.DeadMount) []v1alpha1.DeadMount {
	var all []v1alpha1.DeadMount
	before := map[string]v1alpha1.DeadMount{}
	for _, d := range recorded {
		if d.Node != node {
			all = append(all, d)
			continue
		}
		before[d.UID+" "+d.Reason] = d
	}
	slices.SortFunc(dead, func(a, b v1alpha1.DeadMount) int { return cmp.Compare(a.Pod, b.Pod) })
	for _, d := range dead[:min(len(dead), max(0, v1alpha1.MaxListed-len(all)))] {
		if same, known := before[d.UID+" "+d.Reason]; known {
			d.Message = same.Message
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b v1alpha1.DeadMount) int { return cmp.Compare(a.Node, b.Node) })
	return all
}
