package fence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Next is the whole state machine of one node. It is level-triggered: whatever
// happened before, it goes by what is recorded and what is there. What caches say
// is enough to record what a healthy node has, not to forget that (the node must
// be read live), nor for anything else (all must be).
func Next(f Facts) Step {
	step := Step{Status: *f.Status.DeepCopy()}
	f.shown = f.remembered()
	f.Holding = f.shown
	f.divide(&step)
	switch f.Status.Phase {
	case v1alpha1.NodeFencing, v1alpha1.NodeFenced, v1alpha1.NodeDrained:
		f.fencing(&step)
	case v1alpha1.NodeReturned, v1alpha1.NodeUnfencing:
		f.returning(&step)
	default:
		f.watch(&step)
	}
	step.Status.Ended = f.ended(step.Status)
	f.sayAddressTaken(&step)
	f.sayLostSuccessors(&step)
	step.Status.Volumes = sorted(append(step.Status.Volumes, step.successors...))
	step.Status.Addresses, step.Status.AddressSources = addressesOf(step.Status.Identities)
	step.Status.VolumeCount = len(step.Status.Volumes)
	return step
}

// watch keeps the ledger of a healthy node, and finds out that it is lost.
func (f Facts) watch(step *Step) {
	s := &step.Status
	switch {
	case f.gone() && len(f.Holding) == 0 && len(s.Volumes) == 0 && len(s.Fences) == 0 && len(step.successors) == 0:
		step.Forget = true
	case f.Node.Ready && !f.replaced() && (len(s.Fences) > 0 || len(step.successors) > 0):
		f.comeBack(step)
	case f.Node.Ready && !f.replaced():
		f.healthy(step)
	default:
		f.lost(step)
	}
}

// healthy records what will be needed when the node can't be asked any more.
func (f Facts) healthy(step *Step) {
	s := &step.Status
	s.Incident, s.LostSince = "", nil
	f.record(s)
	if f.Node.OutOfService {
		// It may have been Kubernetes' word that its volumes are free: nothing of this boot is forgotten.
		before := s.Volumes
		if f.Status.Node.BootID != f.Node.Machine.BootID {
			before = nil
		}
		s.Volumes = union(before, f.Holding)
		step.warn(v1alpha1.NodeHealthy, ReasonTaintedButReady, fmt.Sprintf(
			"the node has the taint %s but is Ready: a healthy node is not fenced, and its volumes are attached nowhere else; take the taint away, or shut the node down", OutOfServiceTaint))
		if f.Node.OwnTaint {
			step.RemoveTaint = true // it came back before anything was fenced
		}
		return
	}
	s.Volumes, s.Tainted = union(f.lingering(step), f.Holding), nil
	if strays := f.strays(); len(strays) > 0 {
		s.Fences = strays
		step.warn(v1alpha1.NodeUnfencing, ReasonUnfencing, "a NetworkFence of an incident that is over shuts the node out: letting it in again")
		return
	}
	step.say(v1alpha1.NodeHealthy, ReasonReady, "")
	f.sayNotFenceable(step)
	f.sayShutOut(step)
}

// sayNotFenceable warns of a healthy node that could not be fenced: when it is lost, it is too late
// to find out by which addresses the storage knows it.
func (f Facts) sayNotFenceable(step *Step) {
	var problems []string
	for _, i := range step.Status.Identities {
		k := key{i.Driver, i.ClusterID}
		switch r := f.besideDriver(k); {
		case f.Policy.mode(i.Driver) != ModeFence:
		case r != nil:
			problems = append(problems, r.Message)
		case i.Problem != "":
			problems = append(problems, k.String()+": "+i.Problem)
		}
	}
	if len(problems) > 0 {
		step.warn(v1alpha1.NodeHealthy, ReasonNotFenceable, "the node could not be fenced if it were lost: "+strings.Join(problems, "; "))
	}
}

// endsWithin is how long what runs on a node that came back without a boot is given
// to end: a kubelet that was restarted does not say that it uses a volume that was
// detached by force, even while a container of before still writes to it.
const endsWithin = 5 * time.Minute

// lingering are the volumes that a node came back without, in the same boot.
func (f Facts) lingering(step *Step) []v1alpha1.HeldVolume {
	if f.Status.Node.BootID != f.Node.Machine.BootID {
		return nil
	}
	back := mayHaveBeenForced(f.Status)
	var list []v1alpha1.HeldVolume
	for _, v := range ownVolumes(f.Status.Volumes) {
		if slices.ContainsFunc(f.Holding, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v.PersistentVolume }) {
			if f.lingers(v) {
				step.lookAgain(v.Until.Sub(f.Now))
			}
			continue
		}
		if back && !v.Waiting && (f.Override.Gate == "" || f.Override.Gate == GateTaint) {
			until := metav1.NewTime(f.Now.Add(endsWithin).Truncate(time.Second))
			v.Until = &until
		}
		if v.Until != nil && f.Now.Before(v.Until.Time) {
			step.lookAgain(v.Until.Sub(f.Now))
			list = append(list, v)
		}
	}
	return list
}

// lingers tells whether what runs on the node, in the boot on record, still has time to end. That the node
// is lost again before is no end of it.
func (f Facts) lingers(v v1alpha1.HeldVolume) bool {
	sameBoot := !f.Node.Exists || f.Status.Node.BootID == f.Node.Machine.BootID
	return v.Until != nil && f.Now.Before(v.Until.Time) && sameBoot
}

// mayHaveBeenForced tells whether volumes may have been detached by force since the
// record was written: the node was not Ready, or tainted.
func mayHaveBeenForced(s v1alpha1.NodeFenceStatus) bool {
	return s.Phase == v1alpha1.NodeLost || s.Phase == v1alpha1.NodeFencing || s.Phase == v1alpha1.NodeHealthy && s.Reason == ReasonTaintedButReady
}

// RefreshEvery is how often times are written anew that say nothing else: every
// node's record would else be written all the time.
const RefreshEvery = 5 * time.Minute

// record takes what the sources say now.
func (f Facts) record(s *v1alpha1.NodeFenceStatus) {
	before := s.Identities
	if s.Node.BootID != f.Node.Machine.BootID || s.Node.SystemUUID != f.Node.Machine.SystemUUID {
		before = nil // of another boot, or another machine
	}
	volumes := union(s.Volumes, f.Holding)
	merged := f.merge(before, func(k key) bool {
		return slices.ContainsFunc(volumes, func(v v1alpha1.HeldVolume) bool { return keyOf(v) == k })
	})
	fresh := before != nil && s.Node == f.Node.Machine && s.LastHealthy != nil && f.Now.Sub(s.LastHealthy.Time) < RefreshEvery
	if fresh && sameLedger(merged, s.Identities) {
		return
	}
	now := metav1.NewTime(f.Now.Truncate(time.Second))
	s.LastHealthy, s.Node, s.Identities = &now, f.Node.Machine, merged
}

// lost holds the volumes, and begins to fence once somebody has said that the
// node is out of service, or has deleted it.
func (f Facts) lost(step *Step) {
	s := &step.Status
	if s.LostSince == nil {
		since := f.Now
		if f.Node.Exists && !f.Node.Ready && f.Node.ReadyChanged.Before(since) && !f.Node.ReadyChanged.IsZero() {
			since = f.Node.ReadyChanged
		}
		at := metav1.NewTime(since.Truncate(time.Second))
		s.LostSince = &at
		s.Incident = incidentOf(f.Node.Name, *s)
		f.Override = Override{} // it was for a loss before this one
	}
	s.Volumes = slices.DeleteFunc(union(s.Volumes, f.Holding), f.letGoUnfenced)
	if f.gone() && f.Override.givesUp(f.Node, *s) {
		s.Volumes = f.Holding // it is forgotten once nothing of it is left
	}
	if !f.asked() {
		f.withdraw(step) // of a loss before this one
	}
	if len(s.Fences) > 0 && f.Override.givesUp(f.Node, *s) && f.sharedWith() == "" {
		f.letIn(step) // of an incident before this one
		return
	}
	reason, what := f.how()
	switch {
	case len(f.protected(s.Volumes)) == 0 && f.gone() && (len(f.waiting(s)) > 0 || f.unconfirmed(s)): // it was being let in
		step.say(v1alpha1.NodeFencing, ReasonFencing, what+"; fencing it")
	case len(f.protected(s.Volumes)) == 0 && f.gone() && len(s.Fences) > 0:
		step.say(v1alpha1.NodeDrained, ReasonNodeDeleted, f.deletedMessage())
	case len(f.protected(s.Volumes)) == 0:
		step.say(v1alpha1.NodeLost, ReasonNothingHeld, what+"; no protected volume is on it")
	case f.Override.givesUp(f.Node, *s):
		step.warn(v1alpha1.NodeLost, ReasonOverridden, fmt.Sprintf("%s; it is not fenced, and its volumes are not held: %s says %q", what, f.Override.By, f.Override.Reason))
	case !f.Node.OutOfService && !f.gone() && f.Override.Gate == GateAttach:
		step.warn(v1alpha1.NodeLost, ReasonOverridden, fmt.Sprintf("%s; its volumes may be attached elsewhere although it is not fenced: %s says %q", what, f.Override.By, f.Override.Reason))
	case !f.Node.OutOfService && !f.gone():
		step.warn(v1alpha1.NodeLost, reason, fmt.Sprintf(
			"%s; its volumes are held (%s). If it does not come back, shut it down and say so: kubectl taint nodes %s %s=nodeshutdown:NoExecute", what, list(VolumeNames(s.Volumes)), f.Node.Name, OutOfServiceTaint))
	default:
		step.say(v1alpha1.NodeFencing, ReasonFencing, what+"; fencing it")
	}
}

// letGoUnfenced: it is of a machine that is gone, a volume that nobody holds, since that is switched
// off, and for which nothing was fenced. Were it remembered, the machine would be fenced when that is switched
// on again, by an address that somebody else may have by then, and the volume be held where it is.
func (f Facts) letGoUnfenced(v v1alpha1.HeldVolume) bool {
	fenced := slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool { return keyOfFence(r) == keyOf(v) })
	return f.gone() && !fenced && f.Policy.mode(v.Driver) == ModeOff
}

// unconfirmed tells whether a fence of this incident does not stand, wanted or not.
func (f Facts) unconfirmed(s *v1alpha1.NodeFenceStatus) bool {
	return slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.Incident == s.Incident && r.State != v1alpha1.FenceFenced })
}

// gone: no machine of this record has the node's name.
func (f Facts) gone() bool { return !f.Node.Exists || f.replaced() }

// replaced: the name is taken by another machine, so the one that is on record
// may still run and write, even if nobody has noticed that it was lost. Where nothing of
// that one is left on record, it is the other's as soon as that is Ready, though the record has what
// came with it: what is shown of a node that is not is never to be fenced by the first one's addresses.
func (f Facts) replaced() bool {
	s := f.Status
	left := len(s.Fences) > 0 || len(ownVolumes(s.Volumes)) > 0 || !f.Node.Ready && len(s.Volumes) > 0
	return f.Node.replaces(s) && left
}

// replaces tells whether the node is another machine than the one on record.
func (n Node) replaces(s v1alpha1.NodeFenceStatus) bool {
	return n.Exists && otherMachine(s.Node, n.Machine)
}

// otherMachine tells machines apart: by their UUIDs, and where one has none, by the
// Node object, unless the boot is the same. One machine may have several of those in its time, so that it seems to
// be another; but a machine that is taken for another one's boot would let that one go.
func otherMachine(was, is v1alpha1.MachineIdentity) bool {
	if was.SystemUUID != "" && is.SystemUUID != "" {
		return was.SystemUUID != is.SystemUUID
	}
	sameBoot := was.BootID != "" && was.BootID == is.BootID
	return was.UID != "" && is.UID != "" && was.UID != is.UID && !sameBoot
}

// rebooted: the machine that was lost runs again, without the mounts of before.
func (f Facts) rebooted() bool {
	return f.Node.Exists && !f.replaced() && f.Node.Machine.BootID != "" && f.Status.Node.BootID != "" && f.Node.Machine.BootID != f.Status.Node.BootID
}

func (f Facts) how() (reason, what string) {
	switch {
	case !f.Node.Exists:
		return ReasonNodeDeleted, "the node's object was deleted"
	case f.replaced():
		return ReasonReplaced, "another machine has taken the node's name"
	default:
		return ReasonNotReady, "the node is not Ready"
	}
}

func (f Facts) deletedMessage() string {
	return "the node is gone and stays fenced; when you know that it never comes back: " + OverrideCommand(f.Node.Name, GateUnfence)
}

// protected are the volumes of the machine on record, of storage systems that are not switched off.
func (f Facts) protected(volumes []v1alpha1.HeldVolume) []v1alpha1.HeldVolume {
	return slices.DeleteFunc(ownVolumes(volumes), func(v v1alpha1.HeldVolume) bool { return f.Policy.mode(v.Driver) == ModeOff })
}

// VolumeNames are the names of their PersistentVolumes.
func VolumeNames(volumes []v1alpha1.HeldVolume) []string {
	var names []string
	for _, v := range volumes {
		names = append(names, v.PersistentVolume)
	}
	return names
}
