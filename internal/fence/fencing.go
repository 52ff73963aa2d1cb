package fence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const (
	// refusedAgain is how soon a refusal is checked again without an event.
	refusedAgain = 15 * time.Second
	// unanswered is how long csi-addons may take before Fairlead reports the silence.
	unanswered = 30 * time.Second
)

// released reports whether volumes may be in use elsewhere because of the fence.
func released(r v1alpha1.Fence) bool { return r.VolumesReleased || r.State == v1alpha1.FenceFenced }

// fence requests a fence for each identity of the volumes, and waits until all are confirmed. A failed fence does not delay the
// others.
func (f Facts) fence(step *Step) {
	s := &step.Spec
	f.withdrawSwitchedOff(s)
	withdrawn := slices.DeleteFunc(slices.Clone(s.Fences), func(r v1alpha1.Fence) bool { return !isUnfencing(r) })
	refused := append(f.ask(s), f.follow(step)...)
	waiting := slices.DeleteFunc(slices.Clone(s.Fences), func(r v1alpha1.Fence) bool { return isUnfencing(r) || r.State == v1alpha1.FenceFenced })
	if len(withdrawn) > 0 {
		step.lookAgain(refusedAgain)
	}
	reason, what := f.how()
	act, acted := lastAct(*s, GateAttach)
	problem := slices.IndexFunc(refused, func(r Refusal) bool { return r.Reason != ReasonFencing })
	switch {
	case acted && len(refused)+len(waiting) > 0 && !slices.ContainsFunc(s.Volumes, isHeld):
		step.warn(v1alpha1.NodeFencing, ReasonOverridden, fmt.Sprintf("its volumes may be attached elsewhere although it is not fenced: %s says %q", act.By, act.Reason))
	case problem >= 0:
		step.warn(v1alpha1.NodeFencing, refused[problem].Reason, messages(refused))
		step.lookAgain(refusedAgain)
	case len(refused)+len(waiting) > 0:
		f.sayWaiting(step, waiting, refused)
	case len(withdrawn) > 0:
		f.sayWithdrawn(step, withdrawn)
	case s.Unseen && slices.ContainsFunc(s.Volumes, isHeld):
		step.warn(v1alpha1.NodeFencing, ReasonUnseen, fmt.Sprintf("its addresses are fenced, and its volumes are held nevertheless (%s): its Node was deleted while Fairlead did not look, so it may have booted with other addresses. When you know that it is off: %s",
			Few(VolumeNames(s.Volumes)), f.command(GateAttach)))
	case len(f.Left) > 0 && !f.replaced():
		step.say(v1alpha1.NodeFenced, ReasonFenced, fmt.Sprintf("%s; fenced; still on it: %s", what, Few(f.Left)))
	case !f.here():
		step.say(v1alpha1.NodeDrained, reason, "the node is gone and stays fenced; when you know that it never comes back: "+f.command(GateUnfence))
	default:
		step.say(v1alpha1.NodeDrained, ReasonDrained, "fenced, and its pods and attachments are gone; reboot it to bring it back")
	}
}

// withdrawSwitchedOff: a fence that released nothing is withdrawn when the configuration stops fencing.
func (f Facts) withdrawSwitchedOff(s *v1alpha1.NodeFenceSpec) {
	for i, r := range s.Fences {
		if !released(r) && !isUnfencing(r) && f.Policy.Mode(r.Driver) != ModeFence {
			f.markUnfencing(&s.Fences[i])
		}
	}
}

// ask records a fence for each identity that has none.
func (f Facts) ask(s *v1alpha1.NodeFenceSpec) []Refusal {
	act, acted := lastAct(*s, GateAttach, GateUnfence)
	var refused []Refusal
	for _, k := range keys(f.protected(s.Volumes)) {
		own := slices.DeleteFunc(slices.Clone(s.Volumes), func(v v1alpha1.HeldVolume) bool { return keyOf(v) != k })
		open := slices.ContainsFunc(own, isHeld)
		identity, _ := k.in(s.Identities)
		if slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return !isUnfencing(r) && keyOfFence(r) == k && covers(r, identity) }) || !open && acted && act.Gate == GateUnfence {
			continue
		}
		if f.Policy.Mode(k.driver) == ModeGuard {
			refused = append(refused, *Refuse(ReasonGuardOnly, "%s: Fairlead is configured to guard only: fence the node by hand, then: %s", k, f.command(GateAttach)))
		} else if fence, r := f.request(k, f.number(s, k)); r != nil {
			refused = append(refused, *r)
		} else if f.Asking {
			refused = append(refused, *Refuse(ReasonFencing, "%s: the storage is asked which clients have the volumes open", k))
		} else {
			fence.VolumesReleased = !open
			s.Requests = f.number(s, k)
			s.Fences = append(s.Fences, fence)
		}
	}
	return refused
}

// number of the next request: of a name that no object and no other fence has, also if the record was lost or restored.
func (f Facts) number(s *v1alpha1.NodeFenceSpec, k key) int64 {
	for n := s.Requests + 1; ; n++ {
		name := NetworkFence{Name: fenceName(f.Node.Name, s.Boot, n, k)}
		if _, there := f.object(name.Name); !there && !recordNames(*s, name) {
			return n
		}
	}
}

// covers reports whether a fence blocks all addresses of an identity.
func covers(r v1alpha1.Fence, i v1alpha1.StorageIdentity) bool {
	return !slices.ContainsFunc(clientCIDRs(i), func(c string) bool { return !slices.Contains(r.CIDRs, c) })
}

const editedMessage = ": the NetworkFence was changed; Fairlead recreates it"

// noAnswer says what to check while csi-addons does nothing.
const noAnswer = "csi-addons has not answered; is its controller manager running, and is the driver's leader connected?"

// whyNoAnswer says what was looked at and found.
func (f Facts) whyNoAnswer(fences []v1alpha1.Fence) string {
	for _, r := range fences {
		if f.notAnswered(r) && f.classIsGone(r.Class) {
			return fmt.Sprintf("NetworkFenceClass %s is gone, and there is no other for %s: create one; csi-addons does nothing without it", r.Class, keyOfFence(r))
		}
	}
	return noAnswer
}

// notAnswered reports whether csi-addons has long ignored a NetworkFence.
func (f Facts) notAnswered(r v1alpha1.Fence) bool {
	n, there := f.object(r.Name)
	return there && !n.failed() && f.Now.Sub(r.Since.Time) > unanswered
}

// sayWaiting reports what fencing waits for: csi-addons, or the end of earlier NetworkFences of the node.
func (f Facts) sayWaiting(step *Step, waiting []v1alpha1.Fence, refused []Refusal) {
	for _, w := range waiting {
		if given, left := f.unblockingGivenUp(w); given && left > 0 {
			step.say(v1alpha1.NodeFencing, ReasonFencing, fmt.Sprintf("%s: a command that unblocks its address timed out, and may still run: the fence counts once it is asked for again after that, in %s at most", keyOfFence(w), left.Round(time.Second)))
			return
		}
		if f.wasEdited(w) {
			step.warn(v1alpha1.NodeFencing, ReasonFencing, keyOfFence(w).String()+editedMessage)
			return
		}
		if w.Message != "" {
			step.warn(v1alpha1.NodeFencing, ReasonDriverFailed, fmt.Sprintf("%s: %s (failed %d times; Fairlead retries)", name(w.Driver, w.ClusterID), w.Message, w.Failures+1))
			return
		}
	}
	step.lookAgain(unanswered + time.Second)
	message := messages(refused)
	if len(refused) == 0 {
		message = "waiting for NetworkFence " + Few(fenceNames(waiting))
	}
	switch {
	case slices.ContainsFunc(waiting, f.notAnswered):
		step.warn(v1alpha1.NodeFencing, ReasonUnanswered, message+": "+f.whyNoAnswer(waiting))
	case len(refused) > 0 && slices.ContainsFunc(step.Spec.Fences, func(r v1alpha1.Fence) bool { return isUnfencing(r) && f.notAnswered(r) }):
		step.warn(v1alpha1.NodeFencing, ReasonFencing, message+": "+f.whyNoAnswer(step.Spec.Fences))
	default:
		step.say(v1alpha1.NodeFencing, ReasonFencing, message)
	}
}

// sayWithdrawn reports why fences are withdrawn and what delays that.
func (f Facts) sayWithdrawn(step *Step, withdrawn []v1alpha1.Fence) {
	var whose []string
	message, reason := "an earlier fence of the boot is lifted first, of %s", ReasonFencing
	for _, r := range withdrawn {
		if whose = append(whose, keyOfFence(r).String()); f.Policy.Mode(r.Driver) != ModeFence {
			message, reason = "fencing is switched off for %s: the fence is withdrawn", ReasonSwitchedOff
		}
	}
	_, problem := f.hindrance(withdrawn)
	if problem != "" {
		problem = " (" + problem + ")"
	}
	step.say(v1alpha1.NodeFencing, reason, fmt.Sprintf(message, strings.Join(whose, ", "))+problem)
	step.Warning = problem != ""
}

// hindrance is what keeps fences from being unfenced.
func (f Facts) hindrance(fences []v1alpha1.Fence) (reason, message string) {
	for _, r := range fences {
		if who, _ := f.wantedBy(r); who != "" {
			return ReasonSharedAddress, who
		}
	}
	for _, r := range fences {
		if f.wasEdited(r) {
			return ReasonDriverFailed, keyOfFence(r).String() + editedMessage
		}
		if r.Message != "" {
			return ReasonDriverFailed, keyOfFence(r).String() + ": " + r.Message
		}
	}
	for _, r := range fences {
		if n, _ := f.object(r.Name); n.Unblocks() && r.FailedAt != nil {
			return ReasonUnfencing, fmt.Sprintf("%s: unfenced, and asked once more %s after the last failure, since a command that timed out may still run", keyOfFence(r), lateWithin)
		}
		if f.notAnswered(r) {
			return ReasonUnanswered, "waiting for NetworkFence " + r.Name + ": " + f.whyNoAnswer(fences)
		}
	}
	return "", ""
}

func fenceNames(fences []v1alpha1.Fence) []string {
	var names []string
	for _, r := range fences {
		names = append(names, r.Name)
	}
	return names
}

func messages(refused []Refusal) string {
	var all []string
	for _, r := range refused {
		all = append(all, r.Message)
	}
	return "not fenced: " + strings.Join(all, "; ")
}
