package fence

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A successor is another machine that has taken the name of the one on record, whose
// incident is not over. The record has the addresses of the one that was there
// before, and its fence is of that one: what came with the successor is remembered
// beside it, and no fence counts for that.

// unknownMachine had the name while nobody looked: it is like no other.
const unknownMachine = "unknown"

// is tells whether the node is, to all that is known, the machine that was here.
func (n Node) is(s v1alpha1.Successor) bool {
	return n.Exists && !otherMachine(s.MachineIdentity, n.Machine)
}

// bootedSince tells whether the same machine runs without the mounts of before.
func (n Node) bootedSince(s v1alpha1.Successor) bool {
	return n.is(s) && s.BootID != "" && n.Machine.BootID != "" && s.BootID != n.Machine.BootID
}

// wasLost tells whether volumes of what is here again may have been detached by force.
func (n Node) wasLost(s v1alpha1.Successor) bool {
	return s.LostSince != nil || s.UID != n.Machine.UID
}

// heldBy tells whether a volume is on record for the machine of the record, and
// whether it is for another that has taken its name.
func heldBy(volumes []v1alpha1.HeldVolume, name string) (own, successor bool) {
	for _, v := range volumes {
		if v.PersistentVolume == name {
			own, successor = own || v.Successor == nil, successor || v.Successor != nil
		}
	}
	return own, successor
}

// ownVolumes are those of the machine on record.
func ownVolumes(volumes []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v v1alpha1.HeldVolume) bool { return v.Successor != nil })
}

// divide tells what the machine on record holds from what others hold by its name:
// Holding is what is its own, and the step has what is not.
func (f *Facts) divide(step *Step) {
	f.share(step)
	step.successors = slices.DeleteFunc(step.successors, f.letGoSuccessor)
}

// letGoSuccessor: the machine is gone, and nobody holds the volume since that is switched off. As of
// the one on record (letGoUnfenced), it would be held where it is by then when that is switched on again.
func (f Facts) letGoSuccessor(v v1alpha1.HeldVolume) bool {
	return f.Policy.mode(v.Driver) == ModeOff && !f.Node.is(*v.Successor)
}

// share is divide, before what is switched off is let go of.
func (f *Facts) share(step *Step) {
	step.successors = f.keptBySuccessors(step)
	step.Status.Volumes = ownVolumes(step.Status.Volumes)
	known, is := f.Status.Successor, f.Node.Machine
	seen := known != (v1alpha1.MachineIdentity{})
	switch {
	case f.replaced():
		step.Status.Successor = is
		for _, v := range f.shown {
			step.successors = append(step.successors, f.succeeded(v, is))
		}
		if !seen || otherMachine(known, is) {
			break // it was not looked at since the one came
		}
		f.Holding = nil
		return
	case f.Node.Exists:
		step.Status.Successor = v1alpha1.MachineIdentity{}
		return
	case !seen && f.asked():
		known, seen = v1alpha1.MachineIdentity{UID: unknownMachine}, true
	}
	// What comes up now may be of any machine that had the name since the last look.
	f.Holding = nil
	for _, v := range f.shown {
		own, theirs := heldBy(f.Status.Volumes, v.PersistentVolume)
		if own || !theirs && (f.Status.Successor == v1alpha1.MachineIdentity{}) {
			f.Holding = append(f.Holding, v)
		}
		if !own && !theirs && seen {
			step.successors = append(step.successors, f.succeeded(v, known))
		}
	}
}

// succeeded is a volume that the node shows, as one of a machine that has or had its name.
func (f Facts) succeeded(v v1alpha1.HeldVolume, by v1alpha1.MachineIdentity) v1alpha1.HeldVolume {
	v.Waiting, v.Until = false, nil
	v.Successor = &v1alpha1.Successor{MachineIdentity: by}
	if !f.Node.is(*v.Successor) || !f.Node.Ready || f.Node.OutOfService {
		v.Successor.LostSince = f.lostSince(v)
	}
	return v
}

// lostSince is since when a volume's successor is lost, by the record, or else now.
func (f Facts) lostSince(v v1alpha1.HeldVolume) *metav1.Time {
	i := slices.IndexFunc(f.Status.Volumes, func(was v1alpha1.HeldVolume) bool { return sameHolding(was, v) })
	if i >= 0 && f.Status.Volumes[i].Successor.LostSince != nil {
		return f.Status.Volumes[i].Successor.LostSince
	}
	now := metav1.NewTime(f.Now.Truncate(time.Second))
	return &now
}

// keptBySuccessors are the volumes on record that machines had which have taken the
// node's name, and which they can't be seen to have let go of.
func (f Facts) keptBySuccessors(step *Step) []v1alpha1.HeldVolume {
	var kept []v1alpha1.HeldVolume
	for _, v := range f.Status.Volumes {
		if v.Successor == nil || f.Node.bootedSince(*v.Successor) {
			continue
		}
		if f.Policy.mode(v.Driver) == ModeOff && f.Node.Ready && !f.replaced() {
			continue // nobody holds it, and it is not to keep out who is back
		}
		shown := slices.ContainsFunc(f.shown, func(s v1alpha1.HeldVolume) bool { return s.PersistentVolume == v.PersistentVolume })
		if f.Override.letsGo(*v.Successor) && (f.Node.Exists || !shown) {
			continue // what is shown while nobody has the name would come up again, as lost only now
		}
		lingers := v.Until != nil && f.Now.Before(v.Until.Time)
		if f.replaced() && f.Node.is(*v.Successor) && shown && !lingers {
			continue // as it is shown
		}
		v = *v.DeepCopy()
		if !f.Node.is(*v.Successor) || !f.Node.Ready || f.Node.OutOfService {
			v.Until, v.Successor.LostSince = nil, f.lostSince(v)
			kept = append(kept, v)
			continue
		}
		// The same as of a node that comes back without a boot.
		forced := f.Node.wasLost(*v.Successor)
		if v.Successor.MachineIdentity = f.Node.Machine; forced {
			until := metav1.NewTime(f.Now.Add(endsWithin).Truncate(time.Second))
			v.Until, v.Successor.LostSince = &until, nil
		}
		if v.Until != nil && f.Now.Before(v.Until.Time) {
			step.lookAgain(v.Until.Sub(f.Now))
			kept = append(kept, v)
		}
	}
	return kept
}

// letsGo: what an operator said of the machine on record does not hold for one that
// came later, unless that was lost already.
func (o Override) letsGo(s v1alpha1.Successor) bool {
	return o.Gate == GateAttach && s.LostSince != nil && !o.At.Before(s.LostSince.Time)
}

// sayLostSuccessors says of a record that is settled what is not.
func (f Facts) sayLostSuccessors(step *Step) {
	s := &step.Status
	settled := s.Phase == v1alpha1.NodeFenced || s.Phase == v1alpha1.NodeDrained || s.Phase == v1alpha1.NodeLost && s.Reason == ReasonNothingHeld
	if !settled {
		return
	}
	lost := slices.DeleteFunc(slices.Clone(step.successors), func(v v1alpha1.HeldVolume) bool {
		return v.Successor.LostSince == nil || f.Override.letsGo(*v.Successor) || f.Policy.mode(v.Driver) == ModeOff
	})
	if len(lost) > 0 {
		step.warn(s.Phase, ReasonSuccessorLost, f.successorMessage(lost)+"; "+s.Message)
	}
}

func (f Facts) successorMessage(lost []v1alpha1.HeldVolume) string {
	return fmt.Sprintf("another machine that has had the node's name since is lost too, and can not be fenced, since the addresses on record are not its own; its volumes are held (%s). When it is off for certain: %s",
		list(VolumeNames(lost)), OverrideCommand(f.Node.Name, GateAttach))
}

// inherit hands the record on when what it was of is given up: to a machine that had
// the name after it and is lost, or else to the one that has it now. What was said of
// the one is not said of the other.
func (f *Facts) inherit(step *Step) {
	s := &step.Status
	heir := f.Node.Machine
	if i := slices.IndexFunc(step.successors, func(v v1alpha1.HeldVolume) bool { return !f.Node.is(*v.Successor) }); i >= 0 {
		heir = step.successors[i].Successor.MachineIdentity
	}
	if s.Node == heir && len(step.successors) == 0 {
		return
	}
	s.Node, s.Identities = heir, nil // the addresses were those of what was lost
	if f.Node.Exists || len(step.successors) > 0 {
		s.Incident, f.Override = "", Override{}
	}
	for _, v := range step.successors {
		if !otherMachine(v.Successor.MachineIdentity, heir) {
			v.Successor = nil
		}
		s.Volumes = append(s.Volumes, v)
	}
	s.Volumes = sorted(s.Volumes)
}

// successorKeeps says why a machine that has taken the node's name keeps a volume from being
// attached to another node.
func (h Holder) successorKeeps(volume Volume, node string) *Held {
	for _, v := range h.Status.Volumes {
		if v.PersistentVolume != volume.Name || v.Successor == nil || h.Override.letsGo(*v.Successor) || h.Node.bootedSince(*v.Successor) {
			continue
		}
		here := h.Node.is(*v.Successor)
		switch {
		case here && h.Node.Name == node, here && volume.Shared() && !h.Node.OutOfService:
		case here && h.Node.Ready && !h.Node.OutOfService:
			if volume.exclusive() && (v.Until != nil || h.Node.wasLost(*v.Successor)) {
				return h.stillMounted(volume, node)
			}
		default:
			return &Held{Node: h.Node.Name, Refusal: *refuse(ReasonSuccessorLost, "volume %s was last on a machine that had the name %s after the one on record; it is lost, and the fence of the other is not its own: %s now, it could have two writers. When it is off for certain: %s. Kubernetes tries again by itself; see: kubectl describe nodefence %s",
				volume.Name, h.Node.Name, used(node), OverrideCommand(h.Node.Name, GateAttach), h.Node.Name)}
		}
	}
	return nil
}

// successorLetsGo tells whether an operator has said of all that the machine in the node's
// name had of a volume that it is let go of: in its present boot, and while it is not Ready.
func (h Holder) successorLetsGo(volume Volume) bool {
	said := false
	for _, v := range h.Status.Volumes {
		if v.PersistentVolume != volume.Name || v.Successor == nil || !h.Node.is(*v.Successor) {
			continue
		}
		if h.Node.Ready || v.Successor.BootID != h.Node.Machine.BootID || !h.Override.letsGo(*v.Successor) {
			return false
		}
		said = true
	}
	return said
}
