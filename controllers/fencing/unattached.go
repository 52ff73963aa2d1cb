package fencing

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// Volumes that Kubernetes does not attach: only pods show where they are used.

// leaving is how long an unused volume without attachment stays on the record of a healthy node:
// longer than node-monitor-grace-period, 50 s. A force-deleted pod may still run on a node that was
// cut off, and only the record then names its volume.
const leaving = time.Minute

// placed passes pods that may use such volumes, by the label that the webhook has set, when they get a node, and when they
// start: all of their claims are bound then.
func placed() predicate.Predicate {
	labelled := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[fence.UnattachedLabel] == "true" })
	return predicate.And(labelled, kit.Updated(func(was, is *corev1.Pod) bool {
		return was.Spec.NodeName != is.Spec.NodeName || was.Status.Phase != is.Status.Phase
	}))
}

// drainedWithin is how long a cordoned node is checked often: some stay cordoned for months.
const drainedWithin = 15 * time.Minute

// isDraining reports whether a healthy node was cordoned lately and has volumes without attachment on record. The end
// of their pods is no event, and whoever cordoned the node may delete its object next.
func (d decision) isDraining() bool {
	return d.Node != nil && !d.Facts.Replaced && d.Facts.Now.Sub(fencingreads.CordonedSince(d.Node)) < drainedWithin && slices.ContainsFunc(d.Status.Volumes, func(v v1alpha1.HeldVolume) bool {
		return slices.Contains(d.Unattached, v.Driver)
	})
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
		r.addLeaving(v)
	}
	return views, err
}

// addLeaving adds volumes that a healthy node used until a moment ago.
func (r *Reconciler) addLeaving(v *fencingreads.FenceView) {
	f := &v.Facts
	last, _ := r.left.Load(f.Record)
	before, _ := last.(map[string]time.Time)
	left := map[string]time.Time{}
	for _, was := range f.Status.Volumes {
		has := func(h v1alpha1.HeldVolume) bool { return fence.SameVolume(h, was) }
		// A volume that may have been detached by force stays on record for longer; a reboot ends every use.
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
