package fencing

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// decision is what follows from one look at a node.
type decision struct {
	*cluster.FenceView
	fence.Step
}

func decide(view *cluster.FenceView) decision {
	d := decision{view, fence.Next(view.Facts)}
	message, _, _ := strings.Cut(d.Status.Message, notDone) // it may be that of before
	d.Status.Message = fence.Linked(message, d.Status.Reason)
	if view.Facts.Node.OwnTaint && d.Status.Tainted == nil { // until it is healthy again
		now := metav1.NewTime(view.Facts.Now.Truncate(time.Second))
		d.Status.Tainted = &now
	}
	return d
}

// notDone is before what sayUndone adds to a message.
const notDone = "; not done: "

// differs tells whether there is something to record.
func (d decision) differs() bool {
	if d.Forget {
		return false
	}
	return d.Record == nil || !equality.Semantic.DeepEqual(d.Facts.Status, d.Status) || metaDiffers(d.Record, d.Status)
}

// routine tells whether this is a healthy node whose ledger is kept, and nothing else.
func (d decision) routine() bool {
	if d.Record == nil && d.Forget {
		return true // nothing is known of it, and nothing is to be
	}
	return d.Quiet() && d.Status.Phase == v1alpha1.NodeHealthy && !d.Forget && !d.RemoveTaint && (d.Record == nil || d.Record.DeletionTimestamp == nil)
}

// rests tells whether there is nothing to record and nothing to do.
func (d decision) rests() bool {
	return !d.differs() && !d.Forget && d.idle()
}

// idle tells whether nothing but the record is to be written.
func (d decision) idle() bool {
	return !d.RemoveTaint && len(d.Create)+len(d.Unfence)+len(d.Delete) == 0
}

// onlySays tells whether nothing follows from what is recorded but that it is told.
func (d decision) onlySays() bool {
	return d.idle() && !d.Forget && d.Status.Phase != v1alpha1.NodeFencing && d.Status.Phase != v1alpha1.NodeUnfencing
}

// justLost tells whether all there is to say is that the node is lost: nobody has
// said that it is out of service. What is held only grows by it, and others have no
// part in it.
func (d decision) justLost() bool {
	n, was := d.Facts.Node, d.Facts.Status
	return n.Exists && !n.Ready && !n.OutOfService && d.Status.Phase == v1alpha1.NodeLost && !d.Forget && !d.RemoveTaint &&
		(was.Phase == "" || was.Phase == v1alpha1.NodeHealthy || was.Phase == v1alpha1.NodeLost) && len(was.Fences)+len(d.Status.Fences) == 0
}

// asks tells whether a fence may be recorded that was not before.
func (d decision) asks() bool {
	s := d.Facts.Status
	return d.Status.Phase == v1alpha1.NodeFencing && slices.ContainsFunc(d.Status.Volumes, func(v v1alpha1.HeldVolume) bool {
		return !slices.ContainsFunc(s.Fences, func(f v1alpha1.Fence) bool {
			return f.Incident == s.Incident && f.Driver == v.Driver && f.ClusterID == v.ClusterID
		})
	})
}

// after is when to look again though nothing has happened.
func (d decision) after() time.Duration {
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
	if d.draining() {
		after = min(after, lookForPods)
	}
	if d.After > 0 {
		after = min(after, d.After)
	}
	return after
}
