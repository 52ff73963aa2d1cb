package fencing

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
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

// isSettled reports whether there is nothing to record and nothing to do.
func (d decision) isSettled() bool {
	return !d.differs() && !d.Forget && !d.needsMark() && d.hasNoActions()
}

// hasNoActions reports whether nothing but the record and the mark, which is optional, is to be written.
func (d decision) hasNoActions() bool {
	return !d.RemoveTaint && len(d.Create)+len(d.Unfence)+len(d.Delete) == 0
}

// requestsFence reports whether the record gets a fence that it does not have.
func (d decision) requestsFence() bool {
	return slices.ContainsFunc(d.Status.Fences, func(f v1alpha1.Fence) bool {
		return f.State == v1alpha1.FenceRequested && !slices.ContainsFunc(d.Facts.Status.Fences, func(o v1alpha1.Fence) bool { return o.Name == f.Name })
	})
}

// addresses that the decision may be about, in CIDR form: those on record and those of its fences, before and after it.
func (d decision) addresses() (cidrs []string) {
	for _, s := range []v1alpha1.NodeFenceStatus{d.Facts.Status, d.Status} {
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

// taken are the addresses that a round has decided about, by node name. No decisions about one address of two nodes are made by
// one snapshot: the second would not know of the first.
type taken struct {
	sync.Mutex
	names map[string]string
}

func newTaken() *taken { return &taken{names: map[string]string{}} }

// by takes the addresses for a node; false if another node has one.
func (t *taken) by(name string, addresses []string) bool {
	t.Lock()
	defer t.Unlock()
	if slices.ContainsFunc(addresses, func(a string) bool { return t.names[a] != "" && t.names[a] != name }) {
		return false
	}
	for _, a := range addresses {
		t.names[a] = name
	}
	return true
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
