package fence

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// returned: the machine is Ready again, and has rebooted or was never fenced. It is recorded like a healthy node, and its
// fences stay until it may be readmitted.
func (f Facts) returned(step *Step) {
	f.recordReturn(step)
	earlier := slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool { return r.Incident != f.Status.Incident })
	if earlier || !f.returnedUnfenced() {
		f.readmit(step)
		return
	}
	f.startUnfencing(step)
	step.say(v1alpha1.NodeUnfencing, ReasonUnfencing, "the node is Ready again, as before it was lost, and no volume was released: the fence is withdrawn")
}

// recordReturn: the node is Ready, so its loss is over.
func (f Facts) recordReturn(step *Step) {
	s := &step.Status
	s.Volumes, s.LostSince = union(f.volumesInGrace(step), f.Holding), nil
	f.record(s)
}

// afterReturn watches a returned node until it is unfenced.
func (f Facts) afterReturn(step *Step) {
	forced := f.Override.Gate == GateUnfence
	if (!forced || step.Status.LostSince == nil) && (f.gone() || !f.Node.Ready) {
		f.lost(step) // a new loss if the node had returned: the override does not cover it
		return
	}
	if f.Node.Ready {
		f.recordReturn(step)
	}
	if step.Status.Phase == v1alpha1.NodeUnfencing {
		f.unfencing(step)
		return
	}
	f.follow(step)
	f.readmit(step)
}

// readmit reports what a returned node waits for, or starts to unfence the node.
func (f Facts) readmit(step *Step) {
	ready, _ := f.since(step.Status.ReadySince)
	how := f.howReturned()
	forced := f.Override.Gate == GateUnfence
	mounted := slices.DeleteFunc(f.protected(step.Status.Volumes), func(v v1alpha1.HeldVolume) bool { return !v.Detached })
	switch {
	case !forced && f.Node.OutOfService && !f.Policy.Automatic && (!f.Node.OwnTaint || f.Node.OthersTaint):
		step.say(v1alpha1.NodeReturned, ReasonTainted, fmt.Sprintf("%s; to readmit the node: kubectl taint nodes %s %s-", how, f.Node.Name, OutOfServiceTaint))
	case !forced && ready < f.Policy.ReadyFor:
		step.say(v1alpha1.NodeReturned, ReasonSettling, fmt.Sprintf("%s; it is readmitted once it has been Ready for %s", how, f.Policy.ReadyFor))
		step.lookAgain(f.Policy.ReadyFor - ready)
	case !forced && len(f.OldAttachments) > 0:
		step.warn(v1alpha1.NodeReturned, ReasonOldAttachments, fmt.Sprintf("attachments from before the reboot remain: %s%s", Few(f.OldAttachments), f.keptByPods()+f.mayHaveOldAttachments(step)))
	case !forced && len(mounted) > 0:
		step.warn(v1alpha1.NodeReturned, ReasonStillMounted, fmt.Sprintf("%s, but its kubelet lists volumes in use that are not attached to it, so they may be mounted: %s; delete their pods on the node, or reboot it", how, Few(VolumeNames(mounted))))
	default:
		f.startUnfencing(step)
	}
}

// keptByPods: pods that were never deleted keep their volumes attached, and can't mount them before the node is
// unfenced.
func (f Facts) keptByPods() string {
	if len(f.OldPods) == 0 {
		return ""
	}
	namespace, pod, _ := strings.Cut(f.OldPods[0], "/")
	return fmt.Sprintf("; pods from before the reboot keep them (%s): kubectl delete pod -n %s %s", Few(f.OldPods), namespace, pod)
}

// mayHaveOldAttachments: a deleted pod of a DaemonSet is recreated at once, so its attachment never ends. Without old
// mounts, such an attachment need not keep the node fenced.
func (f Facts) mayHaveOldAttachments(step *Step) string {
	if !f.bootedSinceFenced() || slices.ContainsFunc(step.Status.Volumes, func(v v1alpha1.HeldVolume) bool { return v.Until != nil }) {
		return ""
	}
	return "; if new pods keep them too, as a DaemonSet's do, the node may be readmitted with them, since it has rebooted: " +
		f.command(GateUnfence)
}

// bootedSinceFenced reports whether every fence on record is known to be of an earlier boot.
func (f Facts) bootedSinceFenced() bool {
	now := f.Node.Machine.BootID
	return now != "" && len(f.Status.Fences) > 0 && !slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool {
		n, there := f.object(r.Name)
		return !there || n.Labels[BootLabel] == "" || n.Labels[BootLabel] == LabelValue(now)
	})
}

// howReturned says how the node returned, for messages.
func (f Facts) howReturned() string {
	if f.bootedSinceFenced() {
		return "the node has rebooted"
	}
	return "the node is Ready again"
}

// maxEnded incidents of one boot are remembered.
const maxEnded = 8

// ended are the incidents of this boot that have no fences left.
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

// orphanedFences are NetworkFences of an earlier boot or of an ended incident of this node that are on no record: a leader hung
// while it created one, or the record was deleted.
func (f Facts) orphanedFences() []v1alpha1.Fence {
	var orphans []v1alpha1.Fence
	for _, n := range f.Fences {
		boot := n.Labels[BootLabel]
		if n.Labels[NodeLabel] != LabelValue(f.Node.Name) || boot == "" || f.ours(n) || f.namedBy(n) != nil {
			continue
		}
		if n.Deleting && f.classIsGone(n.Class) { // a fence of another class has replaced it: see resolveClass
			continue
		}
		if boot == LabelValue(f.Node.Machine.BootID) && !n.Unfenced && !slices.Contains(f.Status.Ended, n.Labels[IncidentLabel]) {
			continue // it may block a live mount, and its record be lost
		}
		r := v1alpha1.Fence{
			Name: n.Name, Incident: n.Labels[IncidentLabel], Driver: n.Driver, ClusterID: n.Parameters["clusterID"],
			Class: n.Class, Secret: n.Secret, CIDRs: n.CIDRs, State: v1alpha1.FenceUnfencing, Since: f.now(),
		}
		for _, i := range f.Ledger {
			if fenceName(f.Node.Name, r.Incident, i.Driver, i.ClusterID) == n.Name {
				r.Driver, r.ClusterID = i.Driver, i.ClusterID
			}
		}
		orphans = append(orphans, r)
	}
	return orphans
}

// startUnfencing marks all fences to be unfenced.
func (f Facts) startUnfencing(step *Step) {
	for i := range step.Status.Fences {
		f.markUnfencing(&step.Status.Fences[i])
	}
	if f.Override.Gate == GateUnfence && (f.gone() || f.Node.Ready) {
		step.Status.Volumes = f.Holding // what was on record is free at once, and nothing later is
	}
	f.sayUnfencing(step)
}

func (f Facts) sayUnfencing(step *Step) {
	step.say(v1alpha1.NodeUnfencing, ReasonUnfencing, "unfencing the node")
	if f.Override.Gate == GateUnfence {
		step.warn(v1alpha1.NodeUnfencing, ReasonOverridden, fmt.Sprintf("unfencing the node: %s says %q", f.Override.By, f.Override.Reason))
	}
}

// unfencing waits until all fences are unfenced and gone.
func (f Facts) unfencing(step *Step) {
	s := &step.Status
	f.follow(step)
	if left := s.Fences; len(left) > 0 {
		step.lookAgain(refusedAgain)
		reason, message := f.hindrance(left)
		for i := range left {
			if s.Reason == ReasonSharedAddress && reason != ReasonSharedAddress {
				left[i].Since, reason = f.now(), "" // from here on csi-addons is to act
			}
		}
		switch {
		case reason == ReasonSharedAddress:
			step.say(v1alpha1.NodeUnfencing, reason, message)
		case reason != "":
			step.warn(v1alpha1.NodeUnfencing, reason, message)
		case s.Reason != ReasonUnfencing && s.Reason != ReasonOverridden:
			f.sayUnfencing(step) // the reported reason is outdated
		}
		return
	}
	// No fence is left: the next phase follows as for any other node.
	s.Phase = v1alpha1.NodeLost
	if f.Override.givesUp(f.Node) {
		s.Volumes = f.Holding // what was lost is given up
	}
	if s.Incident == "" || !f.Override.givesUp(f.Node) {
		s.Incident, s.LostSince = "", nil
	}
	f.Status = *s.DeepCopy()
	f.watch(step)
}
