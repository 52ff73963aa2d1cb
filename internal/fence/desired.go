package fence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// isUnfencing: the NetworkFence is Unfenced or may become Unfenced at any time.
func isUnfencing(r v1alpha1.Fence) bool {
	return r.State == v1alpha1.FenceUnfencing || r.State == v1alpha1.FenceUnfenced
}

// follow does for each fence on record what the record wants: unfence what is to be unfenced, keep what is blocked of a boot that is
// over, and block everything else. Unfenced fences whose object is gone leave the record.
func (f Facts) follow(step *Step) (refused []Refusal) {
	var left []v1alpha1.Fence
	for _, r := range step.Spec.Fences {
		f.resolveClass(step, &r)
		n, there := f.object(r.Name)
		if r.Since.After(f.Now) { // by another leader's clock
			r.Since = f.now()
		}
		if r.FailedAt != nil && r.FailedAt.After(f.Now) {
			r.FailedAt = ptr.To(f.now())
		}
		switch {
		case isUnfencing(r):
			if f.unfenceOne(step, &r, n, there) {
				continue
			}
		case step.Spec.Over:
			if there && !n.Blocks() {
				f.remove(step, n) // csi-addons would block a working node
			}
		default:
			if refusal := f.block(step, &r, n, there); refusal != nil {
				refused = append(refused, *refusal)
			}
		}
		left = append(left, r)
	}
	step.Spec.Fences = left
	return refused
}

// resolveClass replaces a deleted NetworkFenceClass by another class of the same driver and clusterID, for a fence that is not
// confirmed. Without its class, csi-addons neither carries out a NetworkFence nor lets it end (v0.14.0: networkfence_controller.go,
// getNetworkFenceInstance). So the fence continues under another name, and the old NetworkFence is deleted: it ends without effect
// if its class comes back.
func (f Facts) resolveClass(step *Step, r *v1alpha1.Fence) {
	first, _, _ := strings.Cut(r.Name, otherClass)
	if old, there := f.object(first); there && r.Name != first && f.classIsGone(old.Class) {
		f.remove(step, old)
	}
	if r.State == v1alpha1.FenceFenced || !f.classIsGone(r.Class) {
		return
	}
	i := slices.IndexFunc(f.Classes, func(c Class) bool { return keyOfFence(*r) == key{c.Driver, c.ClusterID} })
	if i < 0 {
		return
	}
	r.Class, r.Message, r.Since = f.Classes[i].Name, "", f.now()
	r.Name = first + otherClass + short(r.Class)
}

// otherClass separates the name of a fence from the hash of a class that replaced its first one.
const otherClass = "-class-"

// class is the index of a NetworkFenceClass; -1: there is no such class.
func (f Facts) class(name string) int {
	return slices.IndexFunc(f.Classes, func(c Class) bool { return c.Name == name })
}

func (f Facts) classIsGone(name string) bool { return name != "" && f.class(name) < 0 }

// block compares a fence with its NetworkFence. A doubt may have come up since the fence was requested.
func (f Facts) block(step *Step, r *v1alpha1.Fence, n NetworkFence, there bool) *Refusal {
	r.VolumesReleased = released(*r)
	refusal := f.doubt(*r, there && n.Blocks())
	if r.State = v1alpha1.FenceRequested; refusal != nil {
		r.Message = "" // it may have ended: it is recreated once the doubt is gone
		f.remove(step, n)
		return refusal
	}
	switch wait := f.heldFor(step.Spec.LostSince); {
	case !there && !f.here() && wait > 0: // it was requested in an earlier loss, or by another leader
		step.lookAgain(wait)
		return Refuse(ReasonFencing, "%s: the machine is fenced unless it registers again within %s", keyOfFence(*r), wait.Round(time.Second))
	case !there:
		r.Message = ""
		step.Create = append(step.Create, f.newObject(*r, false))
	case n.Deleting:
	case f.wasEdited(*r):
		r.Message = ""
		f.remove(step, n) // csi-addons is sure to handle a new object only
	case n.Blocks() && f.mayBeLifted(step, r, n):
		r.Message = ""
	case n.Blocks():
		r.State, r.Message, r.VolumesReleased = v1alpha1.FenceFenced, "", true
	case n.failed():
		f.retry(step, r, n)
	}
	return nil
}

// unfenceOne requests to unfence, waits for the confirmation, and deletes the NetworkFence: a deletion alone would leave the
// address blocked. It returns true when the NetworkFence is gone.
func (f Facts) unfenceOne(step *Step, r *v1alpha1.Fence, n NetworkFence, there bool) (done bool) {
	_, wanted := f.wantedBy(*r)
	switch {
	case !there && r.State == v1alpha1.FenceUnfenced:
		return true
	case !there && !wanted: // deleted, and the address is still blocked
		step.Create = append(step.Create, f.newObject(*r, true))
	case !there, n.Deleting:
	case wanted, r.State == v1alpha1.FenceUnfenced:
		f.remove(step, n)
	case f.wasEdited(*r):
		r.Message = ""
		f.remove(step, n)
	case !n.Unfenced:
		step.Unfence = append(step.Unfence, n)
	case n.Unblocks() && r.FailedAt != nil:
		f.confirmAgain(step, r, n)
	case n.Unblocks() && n.UID == r.VoidUID: // it is recreated
		f.remove(step, n)
	case n.Unblocks():
		r.State, r.Message, r.Since = v1alpha1.FenceUnfenced, "", f.now()
	case n.failed():
		f.retry(step, r, n)
	}
	return false
}

// lateWithin is how long a command may still run that csi-addons has given up: ceph-csi runs ceph without the deadline of the call
// (v3.15: internal/csi-addons/networkfence). What the storage confirms within that time may be undone, so it counts only if it was
// asked for again after it.
const lateWithin = 300 * time.Second

// confirmAgain asks once more after a failure, when no command of before can still run: one that blocks would block the node for good.
func (f Facts) confirmAgain(step *Step, r *v1alpha1.Fence, n NetworkFence) {
	r.Message = ""
	if age, _ := f.elapsed(r.FailedAt); age < lateWithin {
		step.lookAgain(lateWithin - age)
		return
	}
	r.FailedAt, r.VoidUID = nil, n.UID
}

// mayBeLifted reports whether a confirmed fence does not count: a command that unblocks one of its addresses was given up, for any
// boot, and may run later or has run since. The NetworkFence is then recreated, once that is over.
func (f Facts) mayBeLifted(step *Step, r *v1alpha1.Fence, n NetworkFence) bool {
	given, left := f.unblockingGivenUp(*r)
	switch {
	case !given:
		return false
	case left > 0:
		step.lookAgain(left)
	case r.VoidUID != "" && n.UID != r.VoidUID:
		return false
	case n.UID == r.VoidUID:
		f.remove(step, n)
	}
	r.VoidUID = n.UID
	return true
}

// unblockingGivenUp reports whether a command that unblocks an address of a fence was given up, and how much longer it may run.
func (f Facts) unblockingGivenUp(r v1alpha1.Fence) (given bool, left time.Duration) {
	look := func(fences []v1alpha1.Fence) {
		for _, o := range fences {
			if isUnfencing(o) && o.FailedAt != nil && common(r, o) != "" {
				age, _ := f.elapsed(o.FailedAt)
				given, left = true, max(left, lateWithin-age)
			}
		}
	}
	look(f.Spec.Fences)
	for o := range f.others() {
		look(o.Spec.Fences)
	}
	return given, left
}

// markUnfencing records that a fence is to be unfenced.
func (f Facts) markUnfencing(r *v1alpha1.Fence) {
	if age, known := f.elapsed(r.FailedAt); known && age >= lateWithin {
		r.FailedAt = nil
	}
	r.State, r.Message, r.Failures, r.FailedUID, r.VoidUID, r.Since = v1alpha1.FenceUnfencing, "", 0, "", "", f.now()
}

func (f Facts) now() metav1.Time { return metav1.NewTime(f.Now.Truncate(time.Second)) }

// wantedBy reports whether another fence, of any node, wants one of the addresses blocked, and names the node.
// Addresses alone count: two clusterIDs may be one storage cluster, whose drivers share one block list.
func (f Facts) wantedBy(r v1alpha1.Fence) (who string, wanted bool) {
	for o := range f.others() {
		for _, theirs := range o.Spec.Fences {
			_, there := f.object(theirs.Name)
			made := there || theirs.State == v1alpha1.FenceFenced || theirs.VolumesReleased
			if cidr := common(r, theirs); cidr != "" && made && !isUnfencing(theirs) {
				return fmt.Sprintf("its address %s also keeps out node %s, which may not be readmitted yet; if that machine is known to be off: %s", cidr, o.Node.Name, o.command(GateUnfence)), true
			}
		}
	}
	return "", slices.ContainsFunc(f.Spec.Fences, func(own v1alpha1.Fence) bool { return !isUnfencing(own) && common(r, own) != "" })
}

// common address of two fences.
func common(a, b v1alpha1.Fence) string {
	if i := slices.IndexFunc(a.CIDRs, func(c string) bool { return slices.Contains(b.CIDRs, c) }); i >= 0 {
		return a.CIDRs[i]
	}
	return ""
}

// remove a NetworkFence, which leaves its addresses as they are. An Unfenced one stays until every node that relies
// on the same address has noticed.
func (f Facts) remove(step *Step, n NetworkFence) {
	if n.Name != "" && !n.Deleting && !(n.Unfenced && f.countedOn(n)) {
		step.Delete = append(step.Delete, n)
	}
}

// countedOn reports whether another node is on record as fenced by an address of a NetworkFence.
func (f Facts) countedOn(n NetworkFence) bool {
	return nil != f.other(func(o *Other) bool {
		return !o.Spec.Over && slices.ContainsFunc(o.Spec.Fences, func(theirs v1alpha1.Fence) bool {
			return theirs.State == v1alpha1.FenceFenced && common(v1alpha1.Fence{CIDRs: n.CIDRs}, theirs) != ""
		})
	})
}

// wasEdited reports whether others edited the NetworkFence: it no longer requests what is on record, and is recreated.
func (f Facts) wasEdited(r v1alpha1.Fence) bool {
	n, there := f.object(r.Name)
	return there && (!slices.Equal(n.CIDRs, r.CIDRs) || n.Unfenced && !isUnfencing(r))
}

// retry replaces a NetworkFence that the driver has refused: csi-addons itself backs off for up to 15 minutes.
func (f Facts) retry(step *Step, r *v1alpha1.Fence, n NetworkFence) {
	r.Message = n.Message
	if n.UID == r.FailedUID { // failed before; comparing times would mix two clocks
		f.remove(step, n)
		return
	}
	if wait := backoff(r.Failures) - f.Now.Sub(r.Since.Time); wait > 0 {
		step.lookAgain(wait)
		return
	}
	if r.Failures, r.FailedUID, r.Since = r.Failures+1, n.UID, f.now(); !n.ended() {
		r.FailedAt = ptr.To(f.now())
	}
}

// backoff doubles from 5 s to 2 min.
func backoff(failures int) time.Duration {
	return min(5*time.Second<<min(failures, 10), 2*time.Minute)
}

func (f Facts) object(name string) (NetworkFence, bool) {
	i := slices.IndexFunc(f.Fences, func(n NetworkFence) bool { return n.Name == name })
	if i < 0 {
		return NetworkFence{}, false
	}
	return f.Fences[i], true
}
