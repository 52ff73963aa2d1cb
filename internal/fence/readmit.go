package fence

import (
	"fmt"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// over goes on with a boot that ended: a later boot of the machine was seen, so no process of this boot is left. Its fences stay until the node may be
// readmitted: until then, attachments from before the reboot could be mounted again.
func (f Facts) over(step *Step) {
	s := &step.Spec
	if len(s.Fences) == 0 {
		step.Forget = true
		step.say(v1alpha1.NodeReturned, ReasonReady, "this boot is over")
		return
	}
	f.withdraw(s)
	if IsClosed(*s) && !f.mayReadmit(step) {
		f.follow(step)
		return
	}
	f.startUnfencing(step)
	f.unfence(step, "unfencing the node")
}

// mayReadmit reports whether the node may be readmitted, or says what it waits for.
func (f Facts) mayReadmit(step *Step) bool {
	n := f.Node
	ready, _ := f.since(f.PresentSince)
	const how = "the node has rebooted"
	switch {
	case !n.Exists || !n.Ready:
		step.say(v1alpha1.NodeReturned, ReasonNotReady, how+", and is not Ready: it is readmitted once it is")
	case n.OutOfService && !f.Policy.Automatic && (!n.OwnTaint || n.OthersTaint):
		step.say(v1alpha1.NodeReturned, ReasonTainted, fmt.Sprintf("%s; to readmit the node: kubectl taint nodes %s %s-", how, n.Name, OutOfServiceTaint))
	case ready < f.Policy.ReadyFor:
		step.say(v1alpha1.NodeReturned, ReasonSettling, fmt.Sprintf("%s; it is readmitted once it has been Ready for %s", how, f.Policy.ReadyFor))
		step.lookAgain(f.Policy.ReadyFor - ready)
	case len(f.OldAttachments) > 0:
		step.warn(v1alpha1.NodeReturned, ReasonOldAttachments, fmt.Sprintf("attachments from before the reboot remain: %s%s; if new pods keep them too, as a DaemonSet's do, the node may be readmitted with them, since it has rebooted: %s",
			Few(f.OldAttachments), f.keptByPods(), f.command(GateUnfence)))
	default:
		return true
	}
	return false
}

// keptByPods: pods that were never deleted keep their volumes attached, and can't mount them before the node is
// unfenced.
func (f Facts) keptByPods() string {
	if len(f.OldPods) == 0 {
		return ""
	}
	namespace, pod, _ := strings.Cut(f.OldPods[0], "/")
	return fmt.Sprintf("; pods from before the reboot keep them (%s): kubectl cordon %s; kubectl delete pod -n %s %s", Few(f.OldPods), f.Node.Name, namespace, pod)
}

// startUnfencing marks all fences to be unfenced.
func (f Facts) startUnfencing(step *Step) {
	for i := range step.Spec.Fences {
		if r := &step.Spec.Fences[i]; !isUnfencing(*r) {
			f.markUnfencing(r)
		}
	}
}

// unfence until all fences are gone, and say why or what it waits for.
func (f Facts) unfence(step *Step, why string) {
	f.follow(step)
	step.lookAgain(refusedAgain)
	switch reason, message := f.hindrance(step.Spec.Fences); reason {
	case "":
		step.say(v1alpha1.NodeUnfencing, ReasonUnfencing, why)
	case ReasonSharedAddress, ReasonUnfencing:
		step.say(v1alpha1.NodeUnfencing, reason, message)
	default:
		step.warn(v1alpha1.NodeUnfencing, reason, message)
	}
}

// adopt NetworkFences of this node that are on no record: a leader hung while it created one, or a record was lost. Those of
// another boot of the machine are over, as this one works. One of this boot ended before, if this record knows it; else volumes may have been
// released by it.
func (f Facts) adopt(step *Step) {
	for _, n := range f.Fences {
		boot := n.Labels[BootLabel]
		if n.Labels[NodeLabel] != LabelValue(f.Node.Name) || boot == "" || f.ours(n) || f.namedBy(n) != nil {
			continue
		}
		if n.Labels[MachineLabel] != LabelValue(f.Spec.Boot.SystemUUID) && boot != LabelValue(f.Spec.Boot.BootID) {
			continue // of a machine that is not known to be this one, and may run
		}
		if n.Deleting && f.classIsGone(n.Class) { // a fence of another class has replaced it: see resolveClass
			continue
		}
		r := v1alpha1.Fence{Name: n.Name, Driver: n.Driver, ClusterID: n.Parameters["clusterID"], Class: n.Class, Secret: n.Secret, CIDRs: n.CIDRs, State: v1alpha1.FenceRequested, VolumesReleased: true, Since: f.now()}
		for _, i := range f.Spec.Identities { // its class may be gone
			if strings.HasSuffix(n.Name, "-"+short(i.Driver, i.ClusterID)) {
				r.Driver, r.ClusterID = i.Driver, i.ClusterID
			}
		}
		if i := f.class(n.Class); i >= 0 {
			r.Driver, r.ClusterID = f.Classes[i].Driver, f.Classes[i].ClusterID
		}
		if n.Unfenced || boot != LabelValue(f.Spec.Boot.BootID) || n.Labels[RecordLabel] == f.RecordUID {
			f.markUnfencing(&r)
		}
		step.Spec.Fences = append(step.Spec.Fences, r)
	}
}
