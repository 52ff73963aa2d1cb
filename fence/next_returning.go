package fence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// comeBack: the machine has booted anew since it was fenced, though maybe not since
// it was lost another time. From here on it is recorded like any
// other, but what was blocked stays blocked until it may be let in.
func (f Facts) comeBack(step *Step) {
	s := &step.Status
	s.Volumes, s.LostSince = union(f.lingering(step), f.Holding), nil
	f.record(s)
	f.mayComeIn(step)
}

// returning watches a node that is back, and lets it in.
func (f Facts) returning(step *Step) {
	s := &step.Status
	forced := f.Override.Gate == GateUnfence
	if (!forced || s.LostSince == nil) && (f.gone() || !f.Node.Ready) {
		f.lost(step) // anew, if it was back: then nobody has given it up
		return
	}
	if f.Node.Ready {
		s.Volumes, s.LostSince = union(f.lingering(step), f.Holding), nil
		f.record(s)
	}
	if s.Phase == v1alpha1.NodeReturned {
		f.withdraw(step)
		f.mayComeIn(step)
		return
	}
	f.unfencing(step)
}

// withdraw what was asked for and never answered: csi-addons would shut out a
// node that works again, whenever it gets to it. If it has been done all the
// same, it is taken back with the others: deleting does not unfence.
func (f Facts) withdraw(step *Step) {
	for _, r := range step.Status.Fences {
		if n, there := f.object(r.Name); there && !n.Unfenced && !n.Deleting && !n.Blocks() {
			step.Delete = append(step.Delete, n)
		}
	}
}

// mayComeIn says what a node that is back waits for, or lets it in.
func (f Facts) mayComeIn(step *Step) {
	ready, _ := f.since(step.Status.ReadySince)
	back := f.isBack()
	forced := f.Override.Gate == GateUnfence
	switch {
	case !forced && f.Node.OutOfService && !f.Policy.Automatic && (!f.Node.OwnTaint || f.Node.OthersTaint):
		step.say(v1alpha1.NodeReturned, ReasonTainted, fmt.Sprintf("%s; let it in with: kubectl taint nodes %s %s-", back, f.Node.Name, OutOfServiceTaint))
	case !forced && ready < f.Policy.ReadyFor:
		step.say(v1alpha1.NodeReturned, ReasonSettling, fmt.Sprintf("%s; it is let in when it has been Ready for %s", back, f.Policy.ReadyFor))
		step.lookAgain(f.Policy.ReadyFor - ready)
	case !forced && len(f.OldAttachments) > 0:
		step.warn(v1alpha1.NodeReturned, ReasonOldAttachments, fmt.Sprintf("attachments of before it booted are left: %s%s", list(f.OldAttachments), f.keptByPods()+f.mayHaveOldAttachments(step)))
	case f.sharedWith() != "":
		step.say(v1alpha1.NodeReturned, ReasonSharedAddress, f.sharedWith())
	default:
		f.letIn(step)
	}
}

// keptByPods: Kubernetes keeps attached what pods use that were never taken off the node.
// They can't mount anything before it is let in.
func (f Facts) keptByPods() string {
	if len(f.OldPods) == 0 {
		return ""
	}
	namespace, pod, _ := strings.Cut(f.OldPods[0], "/")
	return fmt.Sprintf("; pods that were there before it booted keep them (%s): kubectl delete pod -n %s %s", list(f.OldPods), namespace, pod)
}

// mayHaveOldAttachments: a DaemonSet's pod that is deleted is there anew at once, so its
// attachment never goes. Where nothing of before can be mounted, that is no reason to keep the node out.
func (f Facts) mayHaveOldAttachments(step *Step) string {
	if !f.bootedSinceFenced() || slices.ContainsFunc(step.Status.Volumes, func(v v1alpha1.HeldVolume) bool { return v.Until != nil }) {
		return ""
	}
	return "; if the next pods there keep them too, as a DaemonSet's do: it has booted since it was fenced, so it may be let in with them: " +
		f.command(GateUnfence)
}

// bootedSinceFenced tells whether every fence on record was made for a boot that is known not to be the present one.
func (f Facts) bootedSinceFenced() bool {
	now := f.Node.Machine.BootID
	return now != "" && len(f.Status.Fences) > 0 && !slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool {
		n, there := f.object(r.Name)
		return !there || n.Labels[BootLabel] == "" || n.Labels[BootLabel] == LabelValue(now)
	})
}

// isBack says how: in a boot for which nothing was fenced, or as it was.
func (f Facts) isBack() string {
	fenced := slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool {
		n, there := f.object(r.Name)
		return there && n.Labels[BootLabel] == LabelValue(f.Node.Machine.BootID)
	})
	if len(f.Status.Fences) == 0 || fenced {
		return "the node is Ready again"
	}
	return "the node has booted anew"
}

// sharedWith finds another node that is kept out by the same address: letting
// this one in would let in that one too, also if an operator wants this one in.
// References are counted by address alone: two clusterIDs may be one storage cluster, with one block list.
func (f Facts) sharedWith() string {
	for _, o := range f.Others {
		waits := o.Status.Phase == v1alpha1.NodeReturned && o.Status.Reason == ReasonSharedAddress
		if waits || o.Status.Phase == v1alpha1.NodeUnfencing || o.Override.Gate == GateUnfence {
			continue // it is to be let in too: two that waited for one another would wait for ever
		}
		for _, theirs := range o.Status.Fences {
			if o.Status.Phase == v1alpha1.NodeFencing && theirs.Incident == o.Status.Incident && (theirs.State == v1alpha1.FenceUnfencing || theirs.State == v1alpha1.FenceLeaving) {
				continue // withdrawn, and to be let in too
			}
			if _, there := f.object(theirs.Name); !there && theirs.State != v1alpha1.FenceFenced && !theirs.LetGo {
				continue // asked for, and not made: nothing was let go for it
			}
			for _, mine := range f.Status.Fences {
				if i := slices.IndexFunc(mine.CIDRs, func(c string) bool { return slices.Contains(theirs.CIDRs, c) }); i >= 0 {
					return fmt.Sprintf("its address %s also keeps out node %s, which may not be let in yet; if that is known to be off: %s", mine.CIDRs[i], o.Node.Name, o.command(GateUnfence))
				}
			}
		}
	}
	return ""
}

// countedOn tells whether another node is on record as fenced by the same address,
// which is let in now: what is Unfenced stays there until that is noticed. Fences
// of before its incident are not looked at, nor any of a node that is to be let in.
func (f Facts) countedOn(r v1alpha1.Fence) bool {
	return slices.ContainsFunc(f.Others, func(o Other) bool {
		switch o.Status.Phase {
		case v1alpha1.NodeFencing, v1alpha1.NodeFenced, v1alpha1.NodeDrained:
		default:
			return false
		}
		return slices.ContainsFunc(o.Status.Fences, func(theirs v1alpha1.Fence) bool {
			return theirs.Incident == o.Status.Incident && theirs.State == v1alpha1.FenceFenced && slices.ContainsFunc(r.CIDRs, func(c string) bool { return slices.Contains(theirs.CIDRs, c) })
		})
	})
}

// maxEnded incidents of one boot are remembered.
const maxEnded = 8

// ended are the incidents of this boot of which nothing is fenced any more.
func (f Facts) ended(is v1alpha1.NodeFenceStatus) []string {
	if is.Node.BootID != f.Status.Node.BootID {
		return nil
	}
	ended := slices.Clone(f.Status.Ended)
	for _, r := range f.Status.Fences {
		if !slices.Contains(ended, r.Incident) {
			ended = append(ended, r.Incident)
		}
	}
	ended = slices.DeleteFunc(ended, func(incident string) bool {
		return slices.ContainsFunc(is.Fences, func(r v1alpha1.Fence) bool { return r.Incident == incident })
	})
	return ended[max(0, len(ended)-maxEnded):]
}

// strays are NetworkFences that were made for a boot of this node that is over, or for
// an incident that was over without a boot, and that no record knows: a leader that hung while it made one, and
// went on when all was over, or a record that somebody deleted.
func (f Facts) strays() []v1alpha1.Fence {
	var strays []v1alpha1.Fence
	for _, n := range f.Fences {
		boot := n.Labels[BootLabel]
		if n.Labels[NodeLabel] != LabelValue(f.Node.Name) || boot == "" || f.ours(n) || slices.ContainsFunc(f.Others, func(o Other) bool { return recordNames(o.Status, n) }) {
			continue
		}
		if boot == LabelValue(f.Node.Machine.BootID) && !n.Unfenced && !slices.Contains(f.Status.Ended, n.Labels[IncidentLabel]) {
			continue // it may keep out what is mounted still, and its record be lost
		}
		r := v1alpha1.Fence{
			Name: n.Name, Incident: n.Labels[IncidentLabel], Driver: n.Driver, ClusterID: n.Parameters["clusterID"],
			Class: n.Class, Secret: n.Secret, CIDRs: n.CIDRs, State: v1alpha1.FenceUnfencing, Since: metav1.NewTime(f.Now.Truncate(time.Second)),
		}
		for _, i := range f.Ledger {
			if fenceName(f.Node.Name, r.Incident, i.Driver, i.ClusterID) == n.Name {
				r.Driver, r.ClusterID = i.Driver, i.ClusterID
			}
		}
		strays = append(strays, r)
	}
	f.Status.Fences = strays
	if f.sharedWith() != "" {
		return nil
	}
	return strays
}

// letIn begins to unfence.
func (f Facts) letIn(step *Step) {
	s := &step.Status
	for i := range s.Fences {
		r := &s.Fences[i]
		r.State, r.Message, r.Failures, r.FailedUID = v1alpha1.FenceUnfencing, "", 0, ""
		r.Since = metav1.NewTime(f.Now.Truncate(time.Second))
	}
	f.sayLettingIn(step)
}

func (f Facts) sayLettingIn(step *Step) {
	step.say(v1alpha1.NodeUnfencing, ReasonUnfencing, "letting the node in again")
	if f.Override.Gate == GateUnfence {
		step.warn(v1alpha1.NodeUnfencing, ReasonOverridden, fmt.Sprintf("letting the node in again: %s says %q", f.Override.By, f.Override.Reason))
	}
}

// settledSince are reasons why a node was not let in that would be said anew if they still held.
func settledSince(reason string) bool {
	return slices.Contains([]string{ReasonSharedAddress, ReasonDriverFailed, ReasonNoCSIAddons, ReasonWriteFailed, ReasonUnanswered}, reason)
}

// unfencing takes each fence back: Unfenced, confirmed, deleted. Deleting alone
// would leave the address blocked for ever.
func (f Facts) unfencing(step *Step) {
	s := &step.Status
	var left []v1alpha1.Fence
	shared := f.sharedWith() // it may have come up since this one began to come in
	for _, r := range s.Fences {
		if !f.takeBack(step, &r, shared != "") {
			left = append(left, r)
		}
	}
	s.Fences = left
	if len(left) > 0 {
		step.Status.Phase = v1alpha1.NodeUnfencing
		if i := slices.IndexFunc(left, func(r v1alpha1.Fence) bool { return r.Message != "" }); shared != "" {
			step.say(v1alpha1.NodeUnfencing, ReasonSharedAddress, shared)
		} else if i >= 0 {
			step.warn(v1alpha1.NodeUnfencing, ReasonDriverFailed, name(left[i].Driver, left[i].ClusterID)+": "+left[i].Message)
		} else if s.Reason == ReasonSharedAddress {
			for i := range left {
				left[i].Since = metav1.NewTime(f.Now.Truncate(time.Second)) // from here on csi-addons is waited for
			}
			f.sayLettingIn(step)
		} else if i := slices.IndexFunc(left, f.notAnswered); i >= 0 {
			step.warn(v1alpha1.NodeUnfencing, ReasonUnanswered, "letting the node in again: waiting for NetworkFence "+left[i].Name+": "+noAnswer)
		} else if settledSince(s.Reason) {
			f.sayLettingIn(step)
		}
		step.lookAgain(refusedAgain)
		return
	}
	// Nothing is fenced any more: what is there now is looked at like any node.
	s.Phase = v1alpha1.NodeLost
	if s.RunsAs != "" {
		f.runsElsewhere(step)
		return
	}
	if f.Override.Gate == GateUnfence && f.Node.Ready || f.Override.givesUp(f.Node) {
		s.Volumes = f.Holding // what was lost is given up
	}
	if s.Incident == "" || !f.Override.givesUp(f.Node) {
		s.Incident, s.LostSince = "", nil
	}
	f.Status = *s.DeepCopy()
	f.watch(step)
}

// takeBack brings one fence to its end, unless it is shared with another node, and
// tells whether that is reached.
func (f Facts) takeBack(step *Step, r *v1alpha1.Fence, shared bool) (done bool) {
	n, there := f.object(r.Name)
	switch {
	case r.State == v1alpha1.FenceLeaving && !there:
		return true
	case r.State == v1alpha1.FenceLeaving:
		if !n.Deleting && !f.countedOn(*r) {
			step.Delete = append(step.Delete, n)
		}
	case shared && there && !n.Unfenced && !n.Deleting && !n.Blocks():
		step.Delete = append(step.Delete, n) // never answered: it would shut out a node that works again
	case shared && !(there && n.Unfenced):
		// what is Unfenced already is brought to its end: the other waits for that
	case !there: // somebody deleted it, and it is blocked still
		step.Create = append(step.Create, object(f.Node.Name, step.Status.Node.BootID, *r, true))
	case n.Deleting:
		// its object goes, and comes back as Unfenced
	case !slices.Equal(n.CIDRs, r.CIDRs):
		// Somebody changed it: what it confirms is not what was blocked.
		r.Message = changedMessage
		step.Delete = append(step.Delete, n)
	case !n.Unfenced:
		step.Unfence = append(step.Unfence, n)
	case n.LetIn():
		r.State, r.Message = v1alpha1.FenceLeaving, ""
		r.Since = metav1.NewTime(f.Now.Truncate(time.Second))
	case n.failed():
		f.askAnew(step, r, n)
	}
	return false
}
