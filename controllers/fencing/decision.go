package fencing

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// decision follows from one look at a node.
type decision struct {
	*fencingreads.FenceView
	fence.Step
}

func decide(view *fencingreads.FenceView) decision {
	d := decision{view, fence.Next(view.Facts)}
	d.finish(view)
	return d
}

// finish the status: what the pure package does not know.
func (d *decision) finish(view *fencingreads.FenceView) {
	was, is := d.was(), &d.Status
	if was.Phase == v1alpha1.NodeFencing && is.Phase == v1alpha1.NodeFencing && view.Facts.Asking && !d.differs() {
		*is = was // it says more than that the storage is asked once more
		return
	}
	if is.LastError = was.LastError; view.Tried || d.hasNoActions() {
		is.LastError = view.LastError
	}
	// Other reasons say more than that a write failed.
	if replaceable := is.Reason == fence.ReasonFencing || is.Reason == fence.ReasonUnfencing; replaceable && is.LastError != "" {
		is.Reason, d.Warning = fence.ReasonWriteFailed, true
		is.Message = "the API server refused a write, which Fairlead tries again: " + is.LastError
	}
	is.Message = fence.Linked(is.Message, is.Reason)
	conditions := slices.Clone(was.Conditions)
	for _, c := range is.Conditions {
		c.Reason, c.Message, c.LastTransitionTime = cmp.Or(is.Reason, "Unknown"), kit.Clip(is.Message, mostError), metav1.NewTime(view.Facts.Now)
		if view.Record != nil {
			c.ObservedGeneration, is.ObservedGeneration = view.Record.Generation, view.Record.Generation
		}
		meta.SetStatusCondition(&conditions, c)
	}
	is.Conditions = conditions
}

// differs reports whether the memory has to be written.
func (d decision) differs() bool {
	if d.Forget {
		return false
	}
	return d.Record == nil || d.Consumed || !equality.Semantic.DeepEqual(d.Facts.Spec, d.Spec) || metaDiffers(d.Record, d.Spec)
}

// isSettled reports whether there is nothing to record and nothing to do.
func (d decision) isSettled() bool {
	return !d.differs() && !d.statusDiffers() && !d.Forget && !d.needsMark() && d.hasNoActions()
}

func (d decision) statusDiffers() bool { return !equality.Semantic.DeepEqual(d.was(), d.Status) }

// was the status before.
func (d decision) was() v1alpha1.NodeFenceStatus {
	if d.Record == nil {
		return v1alpha1.NodeFenceStatus{}
	}
	return d.Record.Status
}

// hasNoActions reports whether nothing but the record and the mark, which is optional, is to be written.
func (d decision) hasNoActions() bool {
	return !d.RemoveTaint && len(d.Create)+len(d.Unfence)+len(d.Delete) == 0
}

// requestsFence reports whether the record gets a fence that it does not have.
func (d decision) requestsFence() bool {
	return slices.ContainsFunc(d.Spec.Fences, func(f v1alpha1.Fence) bool {
		return f.State == v1alpha1.FenceRequested && !slices.ContainsFunc(d.Facts.Spec.Fences, func(o v1alpha1.Fence) bool { return o.Name == f.Name })
	})
}

// addresses that the decision may be about, in CIDR form: those on record and those of its fences, before and after it.
func (d decision) addresses() (cidrs []string) {
	for _, s := range []v1alpha1.NodeFenceSpec{d.Facts.Spec, d.Spec} {
		for _, i := range s.Identities {
			for _, a := range i.Addresses {
				cidrs = append(cidrs, a.CIDR)
			}
		}
		for _, f := range s.Fences {
			cidrs = append(cidrs, f.CIDRs...)
		}
	}
	return cidrs
}

// requeueAfter is when to look again without an event.
func (d decision) requeueAfter() time.Duration {
	after := unwatched
	switch {
	case d.Forget:
		return 0
	case d.Quiet() && d.Status.Phase == v1alpha1.NodeHealthy:
		after = refresh
	case d.Status.Phase == v1alpha1.NodeFenced && len(d.Facts.Left) > 0:
		after = lookForPods
	}
	if d.After > 0 {
		after = min(after, d.After)
	}
	return after
}
