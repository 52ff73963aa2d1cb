package fencing

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// decision follows from one look at a node.
type decision struct {
	*fencing.FenceView
	fence.Step
}

func decide(view *fencing.FenceView) decision {
	d := decision{view, fence.Next(view.Facts)}
	if d.hasNoActions() {
		d.Status.LastError = ""
	}
	// Later looks read the other reasons.
	if replaceable := d.Status.Reason == fence.ReasonFencing || d.Status.Reason == fence.ReasonUnfencing; replaceable && d.Status.LastError != "" {
		d.Status.Reason, d.Warning = fence.ReasonWriteFailed, true
		d.Status.Message = "the API server refused a write, which Fairlead tries again: " + d.Status.LastError
	}
	d.Status.Message = fence.Linked(d.Status.Message, d.Status.Reason)
	if view.Facts.Node.OwnTaint && d.Status.Tainted == nil { // until it is healthy again
		now := metav1.NewTime(view.Facts.Now.Truncate(time.Second))
		d.Status.Tainted = &now
	}
	return d
}

// differs reports whether the record has to be written.
func (d decision) differs() bool {
	if d.Forget {
		return false
	}
	return d.Record == nil || !equality.Semantic.DeepEqual(d.Facts.Status, d.Status) || metaDiffers(d.Record, d.Status)
}

// isRoutine reports whether only the ledger of a healthy node is to be kept.
func (d decision) isRoutine() bool {
	if d.Record == nil && d.Forget {
		return true // there is no record, and none is needed
	}
	return d.Quiet() && d.Status.Phase == v1alpha1.NodeHealthy && !d.Forget && !d.RemoveTaint && (d.Record == nil || d.Record.DeletionTimestamp == nil)
}

// isSettled reports whether there is nothing to record and nothing to do.
func (d decision) isSettled() bool {
	return !d.differs() && !d.Forget && d.hasNoActions()
}

// hasNoActions reports whether nothing but the record is to be written.
func (d decision) hasNoActions() bool {
	return !d.RemoveTaint && len(d.Create)+len(d.Unfence)+len(d.Delete) == 0
}

// onlyReports reports whether the record leads to reports only.
func (d decision) onlyReports() bool {
	return d.hasNoActions() && !d.Forget && d.Status.Phase != v1alpha1.NodeFencing && d.Status.Phase != v1alpha1.NodeUnfencing
}

// isJustLost reports whether the node is lost and not yet marked out of service. The decision
// then only adds to what is held, and concerns no other node.
func (d decision) isJustLost() bool {
	n, was := d.Facts.Node, d.Facts.Status
	return n.Exists && !n.Ready && !n.OutOfService && d.Status.Phase == v1alpha1.NodeLost && !d.Forget && !d.RemoveTaint &&
		(was.Phase == "" || was.Phase == v1alpha1.NodeHealthy || was.Phase == v1alpha1.NodeLost) && len(was.Fences)+len(d.Status.Fences) == 0
}

// asksForFence reports whether a new fence may be recorded.
func (d decision) asksForFence() bool {
	s := d.Facts.Status
	return d.Status.Phase == v1alpha1.NodeFencing && slices.ContainsFunc(d.Status.Volumes, func(v v1alpha1.HeldVolume) bool {
		return !slices.ContainsFunc(s.Fences, func(f v1alpha1.Fence) bool {
			return f.Incident == s.Incident && f.Driver == v.Driver && f.ClusterID == v.ClusterID
		})
	})
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
	if d.Leaving {
		after = min(after, leaving)
	}
	if d.isDraining() {
		after = min(after, lookForPods)
	}
	if d.After > 0 {
		after = min(after, d.After)
	}
	return after
}
