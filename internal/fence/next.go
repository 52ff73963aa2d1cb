package fence

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Next takes the record of one boot one step further. It is level-triggered: it decides on the memory and the present facts.
// Cached facts suffice to record what a working node has. Everything else needs live reads.
func Next(f Facts) Step {
	step := Step{Spec: *f.Spec.DeepCopy()}
	r := f.Request
	if r.Gate == "" {
		r = f.givenUp()
	}
	f.act(&step, r)
	f.observe(&step)
	f.Spec = *step.Spec.DeepCopy()
	switch s := &step.Spec; {
	case s.Over:
		f.over(&step)
	case f.working():
		f.healthy(&step)
	case f.here() && f.Node.Ready:
		f.readyButTainted(&step)
	default:
		f.lost(&step)
	}
	f.sayAddressTaken(&step)
	f.lookWhenGivenUp(&step)
	f.withoutCSIAddons(&step)
	f.sayOldMounts(&step)
	f.publish(&step)
	return step
}

// here reports whether the Node shows this boot.
func (f Facts) here() bool { return isOf(f.Spec, f.Node) }

// Here is here, for who gathers the facts; and Unbroken reports whether nothing can have been detached by force since the record was written.
func (f Facts) Here() bool     { return f.here() }
func (f Facts) Unbroken() bool { return unbroken(f.Spec, f.Node) }

// working reports whether the node is Ready in this boot, and has no out-of-service taint.
func (f Facts) working() bool { return f.here() && f.Node.Ready && !f.Node.OutOfService }

// replaced reports whether another machine has the node's name.
func (f Facts) replaced() bool { return f.Node.Exists && !f.here() && !f.Spec.Over }

// observe what the Node shows of this boot.
func (f Facts) observe(step *Step) {
	s := &step.Spec
	if s.NodeName = f.Node.Name; s.Over || f.Later {
		s.Over, s.Volumes = true, nil
		return
	}
	f.remember(s, step)
	switch {
	case f.working():
		s.LostSince, s.Tainted = nil, nil
	case s.LostSince == nil:
		s.LostSince = ptr.To(f.lostSince())
	}
	if f.here() && f.Node.Ready {
		f.record(s)
	}
	if !f.here() {
		if s.NodeUID != "" && f.Deleted.Boot != s.Boot {
			s.Unseen = true // the machine may have booted and mounted its volumes before its Node was deleted
		}
		s.NodeUID = ""
		return
	}
	if s.Tainted == nil && f.Node.OwnTaint {
		s.Tainted = ptr.To(f.now())
	}
	if f.Node.Ready && (!isSameReady(f.Spec, f.Node) || s.ReadySince == nil || s.ReadySince.After(f.Now)) { // by Fairlead's clock: the kubelet's may be hours off
		s.ReadySince = ptr.To(f.now())
	}
	s.Unseen = false
	s.NodeUID, s.ReadyChanged = f.Node.UID, f.readyChanged()
}

// lostSince is when the node was lost: by its Node, if the clocks agree.
func (f Facts) lostSince() metav1.Time {
	changed, seen := f.Node.ReadyChanged, f.Spec.LastSeen
	if f.here() && !f.Node.Ready && !changed.IsZero() && changed.Before(f.Now) && (seen == nil || !changed.Before(seen.Time)) {
		return metav1.NewTime(changed.Truncate(time.Second))
	}
	return f.now()
}

// RefreshEvery limits how often a record is written for its times alone.
const RefreshEvery = 5 * time.Minute

// record what fencing needs once the node is lost.
func (f Facts) record(s *v1alpha1.NodeFenceSpec) {
	merged := f.merge(s.Identities, func(k key) bool {
		return slices.ContainsFunc(s.Volumes, func(v v1alpha1.HeldVolume) bool { return keyOf(v) == k })
	})
	if age, known := f.since(s.LastSeen); isSameReady(f.Spec, f.Node) && known && age < RefreshEvery && sameLedger(merged, s.Identities) {
		return
	}
	s.LastSeen, s.Identities = ptr.To(f.now()), merged
}

// healthy goes on with a node that works. A fence that released nothing is withdrawn.
func (f Facts) healthy(step *Step) {
	s := &step.Spec
	f.adopt(step)
	f.withdraw(s)
	switch {
	case len(s.Fences) > 0 && !slices.ContainsFunc(s.Fences, released):
		f.unfence(step, "the node is Ready again, as before it was lost, and no volume was released: the fence is withdrawn")
	case IsClosed(*s):
		f.keepFenced(step)
	case len(s.Fences) > 0:
		f.unfence(step, "unfencing the node")
	default:
		step.say(v1alpha1.NodeHealthy, ReasonReady, "")
		if held := f.withheld(s.Volumes); len(held) > 0 {
			step.say(v1alpha1.NodeHealthy, ReasonStillMounted, fmt.Sprintf("the node came back without a reboot, so its old containers may still write: volumes are attached nowhere else until the kubelet, which ends them, has renewed its Lease for five minutes (%s)", Few(held)))
		}
		f.sayNotFenceable(step)
		f.sayBlocked(step)
	}
}

// withdraw the fences that released nothing: the node is Ready.
func (f Facts) withdraw(s *v1alpha1.NodeFenceSpec) {
	for i, r := range s.Fences {
		if !released(r) && !isUnfencing(r) {
			f.markUnfencing(&s.Fences[i])
		}
	}
}

// Remember takes a record only as far as the memory goes: what only a fence needs could not be read, and what is done about the
// fences on record waits for it. What a person has said is memory, too. Nothing is forgotten.
func Remember(f Facts) Step {
	step := Step{Spec: *f.Spec.DeepCopy()}
	f.act(&step, f.Request)
	was := *step.Spec.DeepCopy()
	f.observe(&step)
	s := &step.Spec
	for _, v := range was.Volumes {
		if i := find(v, s.Volumes); i < 0 {
			s.Volumes = append(s.Volumes, v)
		} else if s.Volumes[i].Until == nil {
			s.Volumes[i].Until = v.Until
		}
	}
	s.Over, s.Volumes = was.Over, sorted(s.Volumes)
	f.publish(&step)
	return step
}

// keepFenced keeps a node fenced that is Ready again in the boot that was fenced.
func (f Facts) keepFenced(step *Step) {
	f.follow(step)
	step.warn(v1alpha1.NodeFenced, ReasonNotRebooted, "the node is Ready again but has not booted since it was lost: it still has its old mounts; reboot it")
}

// readyButTainted keeps all volumes on record: Kubernetes may detach the volumes of a working node by force.
func (f Facts) readyButTainted(step *Step) {
	s := &step.Spec
	f.withdraw(s)
	if IsClosed(*s) {
		f.keepFenced(step)
		return
	}
	what := fmt.Sprintf("the node has the taint %s but is Ready: a healthy node is not fenced, and its volumes are attached nowhere else; take the taint away, or shut the node down", OutOfServiceTaint)
	if o := f.other(func(o *Other) bool { return o.Node.Name == f.Node.Name && o.Spec.Over && len(o.Spec.Fences) > 0 }); o != nil && len(s.Fences) == 0 {
		step.say(v1alpha1.NodeReturned, ReasonTainted, "the node has rebooted, and its earlier boot is still fenced: see NodeFence "+o.Record)
		return
	}
	step.RemoveTaint = f.Node.OwnTaint // the node came back before a fence was requested
	if f.follow(step); len(step.Spec.Fences) == 0 {
		step.warn(v1alpha1.NodeHealthy, ReasonTaintedButReady, what)
		return
	}
	step.lookAgain(refusedAgain)
	_, problem := f.hindrance(step.Spec.Fences)
	if problem != "" {
		problem = " (" + problem + ")"
	}
	step.warn(v1alpha1.NodeFencing, ReasonTaintedButReady, what+"; the fence is withdrawn"+problem)
}

// lost holds the volumes. It fences once the node is tainted out of service, or its object was deleted a while ago.
func (f Facts) lost(step *Step) {
	s := &step.Spec
	if !f.here() {
		s.Volumes = slices.DeleteFunc(s.Volumes, f.switchedOff)
		if len(s.Fences) == 0 && len(f.Holding) == 0 && !slices.ContainsFunc(s.Volumes, isHeld) {
			step.Forget = true
		}
	}
	reason, what := f.how()
	held := f.protected(s.Volumes)
	act, acted := lastAct(*s, GateAttach, GateUnfence)
	open := slices.ContainsFunc(held, isHeld)
	out := f.here() && f.Node.OutOfService || !f.here() && f.heldFor(s.LostSince) <= 0
	switch gaveUp := acted && act.Gate == GateUnfence && !open; {
	case out && open, IsClosed(*s):
		f.fence(step)
	case len(s.Fences) > 0:
		text := "unfencing the node"
		if gaveUp {
			text += fmt.Sprintf(": %s says %q", act.By, act.Reason)
		}
		f.unfence(step, text)
	case len(held) == 0:
		step.say(v1alpha1.NodeLost, ReasonNothingHeld, what+"; no protected volume is on it")
	case gaveUp:
		step.warn(v1alpha1.NodeLost, ReasonOverridden, fmt.Sprintf("%s; it is not fenced, and its volumes are not held: %s says %q", what, act.By, act.Reason))
	case f.here() && !f.Node.OutOfService && !open:
		step.warn(v1alpha1.NodeLost, ReasonReleased, fmt.Sprintf("%s; its volumes may be attached elsewhere although it is not fenced: %s says %q. Its pods move once it is tainted", what, act.By, act.Reason))
	case f.here() && !f.Node.OutOfService:
		step.warn(v1alpha1.NodeLost, reason, fmt.Sprintf(
			"%s; %s. If it does not come back, shut it down and say so: kubectl taint nodes %s %s=nodeshutdown:NoExecute", what, heldUntainted(held), f.Node.Name, OutOfServiceTaint))
	case !out:
		step.lookAgain(f.heldFor(s.LostSince))
		step.say(v1alpha1.NodeLost, reason, fmt.Sprintf("%s; its volumes are held (%s), and it is fenced unless it registers again within %s", what, Few(VolumeNames(held)), deletedFor))
	default:
		f.fence(step)
	}
}

// isHeld reports whether no person has released the volume.
func isHeld(v v1alpha1.HeldVolume) bool { return !v.Released }

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
	if seen := f.Deleted.At; !seen.IsZero() {
		age = min(age, f.Now.Sub(seen)) // it may have registered meanwhile
	}
	return deletedFor - age
}

// heldUntainted says which volumes a lost node holds before it is tainted. The gate releases shared file systems until then.
func heldUntainted(volumes []v1alpha1.HeldVolume) string {
	held := slices.DeleteFunc(slices.Clone(volumes), func(v v1alpha1.HeldVolume) bool { return v.Shared })
	if len(held) == 0 {
		return fmt.Sprintf("shared file systems are on it (%s), which are held once it is tainted", Few(VolumeNames(volumes)))
	}
	return fmt.Sprintf("its volumes are held (%s)", Few(VolumeNames(held)))
}

// switchedOff: the machine is gone, and fencing was off for the volume and requested no fence. If the record kept the volume,
// switching fencing on again would fence an address that may belong to another machine by then.
func (f Facts) switchedOff(v v1alpha1.HeldVolume) bool {
	fenced := slices.ContainsFunc(f.Spec.Fences, func(r v1alpha1.Fence) bool { return keyOfFence(r) == keyOf(v) })
	return !fenced && f.Policy.Mode(v.Driver) == ModeOff
}

func (f Facts) how() (reason, what string) {
	switch {
	case f.replaced():
		return ReasonReplaced, "another machine has taken the node's name"
	case !f.here():
		return ReasonNodeDeleted, "the node's object was deleted"
	default:
		return ReasonNotReady, "the node is not Ready"
	}
}

// command overrides a gate of the machine.
func (f Facts) command(gate string) string { return OverrideCommand(f.name(), gate) }

// protected are the volumes of storage systems that are not switched off.
func (f Facts) protected(volumes []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	return slices.DeleteFunc(slices.Clone(volumes), func(v v1alpha1.HeldVolume) bool { return f.Policy.Mode(v.Driver) == ModeOff })
}
