package fencing

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// Volumes that Kubernetes does not attach: nothing but pods tells where they are.

// leaving is how long a volume without attachment stays on record when no pod of a
// healthy node uses it any more: longer than Kubernetes takes to say that a node is
// not Ready (node-monitor-grace-period, 50 s). A pod that was deleted by force may still run on a node that was
// cut off, and then nothing else would name its volume.
const leaving = time.Minute

// unattachedPods brings news of pods that may use such volumes, as the webhook has
// labelled them.
func unattachedPods(mgr ctrl.Manager) (source.Source, error) {
	options := cluster.UnattachedPodsCache()
	options.Scheme, options.Mapper, options.HTTPClient = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient()
	pods, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("choosing which pods to watch: %w", err)
	}
	if err := mgr.Add(pods); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return source.Kind(pods, client.Object(&corev1.Pod{}), handler.EnqueueRequestsFromMapFunc(ofPod), placed()), nil
}

// placed passes pods that got to a node, and once more as they run: all of their
// claims are bound then. That one is gone is no news: whether what it used is let go of,
// its going does not tell.
func placed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(ofPod(context.Background(), e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, wasPod := e.ObjectOld.(*corev1.Pod)
			is, isPod := e.ObjectNew.(*corev1.Pod)
			return wasPod && isPod && (was.Spec.NodeName != is.Spec.NodeName || was.Status.Phase != is.Status.Phase)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// drainedWithin is how long a node that was cordoned is looked at often: some stay so for months.
const drainedWithin = 15 * time.Minute

// draining: a healthy node was cordoned lately and has volumes on record of which nothing but pods tells. That
// they have ended is no event, and whoever cordoned it may be about to delete its object.
func (d decision) draining() bool {
	return !d.Cordoned.IsZero() && d.Facts.Now.Sub(d.Cordoned) < drainedWithin && slices.ContainsFunc(d.Status.Volumes, func(v v1alpha1.HeldVolume) bool {
		return slices.Contains(d.Unattached, v.Driver)
	})
}

// seenCordoned remembers since when a node is.
func (r *Reconciler) seenCordoned(v *cluster.FenceView) {
	if v.Node == nil || !v.Node.Spec.Unschedulable {
		r.cordoned.Delete(v.Facts.Node.Name)
		return
	}
	since, _ := r.cordoned.LoadOrStore(v.Facts.Node.Name, v.Facts.Now)
	v.Cordoned = since.(time.Time)
}

// views are read of one node name.
func (r *Reconciler) views(ctx context.Context, from *cluster.FenceReader, node string) ([]*cluster.FenceView, error) {
	views, err := from.Views(ctx, node, r.Clock.Now())
	for _, v := range views {
		r.remember(v)
		if !v.Facts.Replaced {
			r.seenCordoned(v)
		}
	}
	return views, err
}

// remember adds to what a healthy node has what it had until a moment ago.
func (r *Reconciler) remember(v *cluster.FenceView) {
	f := &v.Facts
	last, _ := r.left.Load(f.Record)
	before, _ := last.(map[string]time.Time)
	left := map[string]time.Time{}
	for _, was := range f.Status.Volumes {
		has := func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == was.PersistentVolume }
		// What may have been detached by force is kept for longer, and a boot ends all.
		if f.Status.Reason == fence.ReasonTaintedButReady || was.Until != nil || f.Status.Node.BootID != f.Node.Machine.BootID ||
			!slices.Contains(v.Unattached, was.Driver) || slices.ContainsFunc(f.Holding, has) {
			continue
		}
		since, known := before[was.PersistentVolume]
		if !known {
			since = f.Now
		}
		left[was.PersistentVolume] = since
		if f.Now.Sub(since) < leaving {
			f.Holding, v.Leaving = append(f.Holding, was), true
		}
	}
	if len(left) == 0 {
		r.left.Delete(f.Record)
		return
	}
	r.left.Store(f.Record, left)
}
