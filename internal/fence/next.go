package fence

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Next is the state machine of one machine. It is level-triggered: it decides on the record and the present facts.
// Cached facts suffice to record what a healthy node holds. Forgetting needs a live read of the node, and
// everything else needs live reads of all facts.
func Next(f Facts) Step {
	step := Step{Status: *f.Status.DeepCopy()}
	f.identify(&step.Status)
	f.Status.Identities = step.Status.Identities
	f.Status.Volumes = f.ownGracePeriods()
	step.Status.Volumes = slices.Clone(f.Status.Volumes)
	f.Holding = f.remembered()
	step.Status.Released = f.releasedInThisBoot()
	f.Override = f.Override.still(f.Node)
	f.Override = f.givenUp()
	switch phase := f.Status.Phase; {
	case isFencing(phase):
		f.fencing(&step)
	case phase == v1alpha1.NodeReturned, phase == v1alpha1.NodeUnfencing:
		f.afterReturn(&step)
	default:
		f.watch(&step)
	}
	step.Status.Ended = f.ended(step.Status)
	f.sayAddressTaken(&step)
	f.lookWhenGivenUp(&step)
	f.withoutCSIAddons(&step)
	f.sayOldMounts(&step)
	step.Status.Addresses, step.Status.AddressSources = addressesOf(step.Status.Identities)
	step.Status.VolumeCount = len(step.Status.Volumes)
	return step
}

// identify records the machine that the record belongs to: the present one, or one that Fairlead never saw.
func (f Facts) identify(s *v1alpha1.NodeFenceStatus) {
	s.NodeName, s.Gone = f.Node.Name, !f.Node.Exists
	unwritten := s.Node == v1alpha1.MachineIdentity{}
	if unwritten {
		s.Node = f.Node.Machine
		if !f.Node.Exists {
			s.Node.UID = unknownMachine
		}
	}
	// The machine may have rebooted and mounted its volumes before its Node was deleted: a later boot proves nothing. If it
	// was seen in another boot, the addresses on record are of an earlier one, and no fence is requested by them: see stale.
	if s.Gone && !f.Status.Gone && !unwritten && f.LastBoot != s.Node.BootID {
		s.Node.BootID = ""
		if f.LastBoot != "" && len(s.Fences) == 0 {
			s.Identities = nil
		}
	}
	if f.Node.Exists || unwritten {
		s.Ordinal = max(s.Ordinal, f.ordinal)
	}
}

// watch keeps the ledger of a healthy node and detects its loss.
func (f Facts) watch(step *Step) {
	s := &step.Status
	switch {
	case f.gone() && len(f.Holding) == 0 && len(s.Volumes) == 0 && len(s.Fences) == 0:
		step.Forget = true
	case f.Node.Ready && len(s.Fences) > 0:
		f.returned(step)
	case f.Node.Ready:
		f.healthy(step)
	default:
		f.lost(step)
	}
}

// healthy records what fencing needs once the node is lost.
func (f Facts) healthy(step *Step) {
	s := &step.Status
	s.Incident, s.LostSince = "", nil
	f.record(s)
	if f.Node.OutOfService {
		// Kubernetes may have detached its volumes by force: nothing of this boot is forgotten.
		before := s.Volumes
		if f.otherBoot() {
			before = nil
		}
		s.Volumes = union(before, f.Holding)
		step.warn(v1alpha1.NodeHealthy, ReasonTaintedButReady, fmt.Sprintf(
			"the node has the taint %s but is Ready: a healthy node is not fenced, and its volumes are attached nowhere else; take the taint away, or shut the node down", OutOfServiceTaint))
		if f.Node.OwnTaint {
			step.RemoveTaint = true // the node returned before a fence was requested
		}
		return
	}
	s.Volumes, s.Tainted = union(f.volumesInGrace(step), f.Holding), nil
	if orphans := f.orphanedFences(); len(orphans) > 0 {
		s.Fences = orphans
		step.warn(v1alpha1.NodeUnfencing, ReasonUnfencing, "a NetworkFence of an incident that is over blocks the node: unfencing the node")
		return
	}
	step.say(v1alpha1.NodeHealthy, ReasonReady, "")
	f.sayNotFenceable(step)
	f.sayBlocked(step)
}

// endsWithin is the grace period for old containers on a node that returned without rebooting: a restarted kubelet
// does not list a volume that was detached by force, even while an old container writes to it.
const endsWithin = 5 * time.Minute

// volumesInGrace are the volumes in their grace period, that a node no longer shows after it returned in the same boot.
func (f Facts) volumesInGrace(step *Step) []v1alpha1.HeldVolume {
	if f.otherBoot() {
		return nil
	}
	returned := wasAway(f.Status, f.Node)
	var list []v1alpha1.HeldVolume
	for _, v := range f.Status.Volumes {
		if find(v, f.Holding) >= 0 {
			if f.inGrace(v) {
				step.lookAgain(v.Until.Sub(f.Now))
			}
			continue
		}
		if returned && !f.overridden() {
			v.Until = f.graceEnds()
		}
		if v.Until != nil && f.Now.Before(v.Until.Time) {
			step.lookAgain(v.Until.Sub(f.Now))
			list = append(list, v)
		}
	}
	return list
}

// overridden: an operator released the volumes of a lost node, which is back since. Only the first look after the return counts:
// the node may be lost again unseen, and an override is for what was on record when it was given.
func (f Facts) overridden() bool {
	s := f.Status
	lost := s.Phase == v1alpha1.NodeLost || isFencing(s.Phase) || s.Phase == v1alpha1.NodeUnfencing && s.LostSince != nil
	return lost && (f.Override.Gate == GateAttach || f.Override.Gate == GateUnfence)
}

// inGrace reports whether the grace period of old containers of the boot on record has not ended. A new loss of the node
// does not end the period.
func (f Facts) inGrace(v v1alpha1.HeldVolume) bool {
	return v.Until != nil && f.Now.Before(v.Until.Time) && !(f.Node.Exists && f.otherBoot())
}

// mayHaveBeenForced reports whether volumes may have been detached by force since the record was written: the node was
// not Ready, or tainted.
func mayHaveBeenForced(s v1alpha1.NodeFenceStatus) bool {
	return s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing || s.Phase == v1alpha1.NodeHealthy && s.Reason == ReasonTaintedButReady
}

// MissedLoss reports whether a node that is Ready was lost in the boot on record while Fairlead did not look: its Ready
// condition has another time than on record, or its Node was created again. The length of the loss does not count:
// Kubernetes detaches by force six minutes after it began to, if the node is not Ready just then (v1.37.2,
// pkg/controller/volume/attachdetach/reconciler: forceDetach).
func MissedLoss(s v1alpha1.NodeFenceStatus, n Node) bool {
	flapped := s.ReadyChanged != nil && !s.ReadyChanged.Time.Equal(n.ReadyChanged)
	return n.Ready && s.Node.BootID == n.Machine.BootID && (flapped || s.Node.UID != n.Machine.UID)
}

// wasAway reports whether a node that is Ready may have been lost or tainted since the record was written. Fairlead may
// have missed more: a volume that only waited may have been attached, mounted and detached by force.
func wasAway(s v1alpha1.NodeFenceStatus, n Node) bool {
	return n.Ready && (mayHaveBeenForced(s) || MissedLoss(s, n))
}

// RefreshEvery limits how often a record is written for its times alone.
const RefreshEvery = 5 * time.Minute

// sawReady records since when the node is Ready, by Fairlead's clock: the kubelet's clock may be hours off.
func (f Facts) sawReady(s *v1alpha1.NodeFenceStatus) {
	sameBoot := s.Node.BootID == f.Node.Machine.BootID
	if sameBoot && s.ReadySince != nil && !s.ReadySince.After(f.Now) && s.ReadyChanged != nil && s.ReadyChanged.Time.Equal(f.Node.ReadyChanged) {
		return
	}
	now, changed := metav1.NewTime(f.Now.Truncate(time.Second)), metav1.NewTime(f.Node.ReadyChanged)
	s.ReadySince, s.ReadyChanged = &now, &changed
}

// record stores what the sources report now.
func (f Facts) record(s *v1alpha1.NodeFenceStatus) {
	f.sawReady(s)
	before := s.Identities
	if f.otherBoot() || s.Node.SystemUUID != f.Node.Machine.SystemUUID {
		before = nil // from another boot or machine
	}
	volumes := union(s.Volumes, f.Holding)
	merged := f.merge(before, func(k key) bool {
		return slices.ContainsFunc(volumes, func(v v1alpha1.HeldVolume) bool { return keyOf(v) == k })
	})
	age, known := f.since(s.LastHealthy)
	fresh := before != nil && s.Node == f.Node.Machine && known && age < RefreshEvery
	if fresh && sameLedger(merged, s.Identities) {
		return
	}
	now := metav1.NewTime(f.Now.Truncate(time.Second))
	s.LastHealthy, s.Node, s.Identities = &now, f.Node.Machine, merged
}

// lost holds the volumes. It begins to fence once the node is tainted out of service or its object is deleted.
func (f Facts) lost(step *Step) {
	s := &step.Status
	if s.LostSince == nil {
		since := f.Now
		seen := s.LastHealthy
		clocksAgree := f.Node.ReadyChanged.Before(since) && (seen == nil || !f.Node.ReadyChanged.Before(seen.Time))
		if f.Node.Exists && !f.Node.Ready && clocksAgree && !f.Node.ReadyChanged.IsZero() {
			since = f.Node.ReadyChanged
		}
		at := metav1.NewTime(since.Truncate(time.Second))
		s.LostSince = &at
		s.Incident = incidentOf(f.Node.Name, *s)
		f.Override = Override{} // it was for an earlier loss
	}
	s.Volumes = slices.DeleteFunc(union(s.Volumes, f.Holding), f.releasedUnfenced)
	if f.gone() && f.Override.givesUp(f.Node) {
		s.Volumes = f.Holding // forgotten once nothing remains of it
	}
	if !f.wasRequested() && s.Phase != v1alpha1.NodeUnfencing {
		f.follow(step) // fences of an earlier loss
	}
	if len(s.Fences) > 0 && f.Override.givesUp(f.Node) {
		f.startUnfencing(step) // of an earlier incident
		return
	}
	reason, what := f.how()
	switch {
	case len(f.protected(s.Volumes)) == 0 && f.gone() && f.wasRequested(): // unfencing had begun
		step.say(v1alpha1.NodeFencing, ReasonFencing, what+"; fencing it")
	case len(f.protected(s.Volumes)) == 0 && f.gone() && len(s.Fences) > 0:
		step.say(v1alpha1.NodeDrained, ReasonNodeDeleted, f.deletedMessage())
	case len(f.protected(s.Volumes)) == 0:
		step.say(v1alpha1.NodeLost, ReasonNothingHeld, what+"; no protected volume is on it")
	case f.Override.givesUp(f.Node):
		step.warn(v1alpha1.NodeLost, ReasonOverridden, fmt.Sprintf("%s; it is not fenced, and its volumes are not held: %s says %q", what, f.Override.By, f.Override.Reason))
	case !f.Node.OutOfService && !f.gone() && f.Override.Gate == GateAttach:
		step.warn(v1alpha1.NodeLost, ReasonReleased, fmt.Sprintf("%s; its volumes may be attached elsewhere although it is not fenced: %s says %q. Its pods move once it is tainted", what, f.Override.By, f.Override.Reason))
	case f.gone() && !f.Replaced && !f.wasRequested() && f.heldFor(s.LostSince) > 0:
		step.lookAgain(f.heldFor(s.LostSince))
		step.say(v1alpha1.NodeLost, reason, fmt.Sprintf("%s; its volumes are held (%s), and it is fenced unless it registers again within %s", what, Few(VolumeNames(f.protected(s.Volumes))), deletedFor))
	case !f.Node.OutOfService && !f.gone():
		step.warn(v1alpha1.NodeLost, reason, fmt.Sprintf(
			"%s; %s. If it does not come back, shut it down and say so: kubectl taint nodes %s %s=nodeshutdown:NoExecute", what, heldUntainted(f.protected(s.Volumes)), f.Node.Name, OutOfServiceTaint))
	default:
		step.say(v1alpha1.NodeFencing, ReasonFencing, what+"; fencing it")
		if len(s.Fences) == 0 { // else of an earlier loss, which come first
			f.Status = *s.DeepCopy()
			f.fencing(step)
		}
	}
}

// deletedFor is how long a machine without a Node is held before the machine is fenced, about as long as Kubernetes waits for a
// silent node. The kubelet of a healthy machine registers its Node again when the kubelet starts.
const deletedFor = 40 * time.Second

// heldFor is how much longer a machine is held that lost its Node. A time by the clock of another leader counts from when this
// controller began to lead.
func (f Facts) heldFor(since *metav1.Time) time.Duration {
	age, known := f.elapsed(since)
	if !known {
		age = f.Now.Sub(f.Started)
	}
	return deletedFor - age
}

// heldUntainted says which volumes a lost node holds before it is tainted. The gate releases shared file systems until then.
func heldUntainted(volumes []v1alpha1.HeldVolume) string {
	held := slices.DeleteFunc(slices.Clone(volumes), func(v v1alpha1.HeldVolume) bool { return v.Shared && !v.Block })
	if len(held) == 0 {
		return fmt.Sprintf("shared file systems are on it (%s), which are held once it is tainted", Few(VolumeNames(volumes)))
	}
	return fmt.Sprintf("its volumes are held (%s)", Few(VolumeNames(held)))
}

// releasedUnfenced: the machine is gone, and fencing was off for the volume and requested no fence. If the record kept
// the volume, switching fencing on again would fence an address that may belong to another machine by then.
func (f Facts) releasedUnfenced(v v1alpha1.HeldVolume) bool {
	fenced := slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool { return keyOfFence(r) == keyOf(v) })
	return f.gone() && !fenced && f.Policy.Mode(v.Driver) == ModeOff
}

// gone: the machine has no Node object. It may still run and write.
func (f Facts) gone() bool { return !f.Node.Exists }

// rebooted: the lost machine runs again, without its old mounts.
func (f Facts) rebooted() bool {
	return f.Node.Exists && f.Node.Machine.BootID != "" && f.otherBoot()
}

// otherBoot: the record is of another boot of the machine than the present one.
func (f Facts) otherBoot() bool {
	return f.Status.Node.BootID != "" && f.Status.Node.BootID != f.Node.Machine.BootID
}

func (f Facts) how() (reason, what string) {
	switch {
	case f.Replaced:
		return ReasonReplaced, "another machine has taken the node's name"
	case f.gone():
		return ReasonNodeDeleted, "the node's object was deleted"
	default:
		return ReasonNotReady, "the node is not Ready"
	}
}

func (f Facts) deletedMessage() string {
	return "the node is gone and stays fenced; when you know that it never comes back: " + f.command(GateUnfence)
}

// command overrides a gate of the machine.
func (f Facts) command(gate string) string {
	return OverrideCommand(cmp.Or(f.Record, f.Node.Name), gate)
}

// protected are the volumes of storage systems that are not switched off.
func (f Facts) protected(volumes []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v v1alpha1.HeldVolume) bool { return f.Policy.Mode(v.Driver) == ModeOff })
}

// VolumeNames are the names of their PersistentVolumes.
func VolumeNames(volumes []v1alpha1.HeldVolume) []string {
	var names []string
	for _, v := range volumes {
		names = append(names, v.PersistentVolume)
	}
	return names
}
