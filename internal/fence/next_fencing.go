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

// fencing requests a fence for each identity of the node's volumes and waits until all are confirmed. A failed fence
// does not delay the others.
func (f Facts) fencing(step *Step) {
	s := &step.Status
	s.Volumes = slices.DeleteFunc(union(s.Volumes, f.Holding), f.releasedUnfenced)
	switch {
	case f.Override.Gate == GateUnfence:
		f.startUnfencing(step)
		return
	case f.Node.Ready && len(s.Fences) > 0 && (f.rebooted() || f.returnedUnfenced() && !f.Node.OutOfService):
		f.returned(step)
		return
	case !f.wasRequested() && (f.Node.Ready || !f.Node.OutOfService && !f.gone() || len(f.protected(s.Volumes)) == 0):
		f.watch(step) // no fence is requested, and none is needed now
		return
	}
	withdrawn := f.current(s.Fences, toUnfence)
	refused := append(f.ask(step), f.follow(step)...)
	waiting := slices.DeleteFunc(f.current(s.Fences, toBlock), func(r v1alpha1.Fence) bool { return r.State == v1alpha1.FenceFenced })
	if len(withdrawn) > 0 {
		step.lookAgain(refusedAgain)
	}
	reason, what := f.how()
	problem := slices.IndexFunc(refused, func(r Refusal) bool { return r.Reason != ReasonFencing })
	switch {
	case f.returnedUnfenced():
		f.sayWithdrawn(step, withdrawn)
	case f.Override.Gate == GateAttach && len(refused)+len(waiting) > 0:
		step.warn(v1alpha1.NodeFencing, ReasonOverridden, fmt.Sprintf("its volumes may be attached elsewhere although it is not fenced: %s says %q", f.Override.By, f.Override.Reason))
	case f.Asking && f.Status.Phase == v1alpha1.NodeFencing && (f.Node.Ready || s.Reason != ReasonOldMounts): // the record says more than that the storage is asked once more
	case problem >= 0:
		step.warn(v1alpha1.NodeFencing, refused[problem].Reason, messages(refused))
		step.lookAgain(refusedAgain)
	case len(refused)+len(waiting) > 0:
		f.sayWaiting(step, waiting, refused)
	case len(withdrawn) > 0:
		f.sayWithdrawn(step, withdrawn)
	case f.Node.Ready && f.Status.Node.BootID == "":
		step.warn(v1alpha1.NodeFenced, ReasonNotRebooted, "the node is Ready again, and may have its old mounts: its Node was deleted while Fairlead did not look, so its last boot is unknown; reboot it, then: "+f.command(GateUnfence))
	case f.Node.Ready:
		step.warn(v1alpha1.NodeFenced, ReasonNotRebooted, "the node is Ready again but has not booted since it was lost: it still has its old mounts; reboot it")
	case len(f.Left) > 0:
		step.say(v1alpha1.NodeFenced, ReasonFenced, fmt.Sprintf("%s; fenced; still on it: %s", what, Few(f.Left)))
	case f.gone():
		step.say(v1alpha1.NodeDrained, reason, f.deletedMessage())
	default:
		step.say(v1alpha1.NodeDrained, ReasonDrained, "fenced, and its pods and attachments are gone; reboot it to bring it back")
	}
}

// current are the fences of which the record wants this.
func (f Facts) current(fences []v1alpha1.Fence, w want) []v1alpha1.Fence {
	return slices.DeleteFunc(slices.Clone(fences), func(r v1alpha1.Fence) bool { return f.wants(r) != w })
}

// ask records a fence for each identity that has none in this incident.
func (f Facts) ask(step *Step) []Refusal {
	s := &step.Status
	var refused []Refusal
	if f.returnedUnfenced() {
		return nil // the node works
	}
	for _, k := range keys(f.protected(s.Volumes)) {
		if slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.Incident == s.Incident && keyOfFence(r) == k }) {
			continue
		}
		if f.Policy.Mode(k.driver) == ModeGuard {
			refused = append(refused, *Refuse(ReasonGuardOnly, "%s: Fairlead is configured to guard only: fence the node by hand, then: %s", k, f.command(GateAttach)))
		} else if fence, r := f.request(k); r != nil {
			refused = append(refused, *r)
		} else if f.Asking {
			refused = append(refused, *Refuse(ReasonFencing, "%s: the storage is asked which clients have the volumes open", k))
		} else {
			s.Fences = append(s.Fences, fence)
		}
	}
	return refused
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
	case len(refused) > 0 && slices.ContainsFunc(step.Status.Fences, func(r v1alpha1.Fence) bool { return isUnfencing(r) && f.notAnswered(r) }):
		step.warn(v1alpha1.NodeFencing, ReasonFencing, message+": "+f.whyNoAnswer(step.Status.Fences))
	default:
		step.say(v1alpha1.NodeFencing, ReasonFencing, message)
	}
}

// sayWithdrawn reports why fences are withdrawn and what delays that.
func (f Facts) sayWithdrawn(step *Step, withdrawn []v1alpha1.Fence) {
	var whose []string
	for _, r := range withdrawn {
		whose = append(whose, keyOfFence(r).String())
	}
	_, problem := f.hindrance(f.current(step.Status.Fences, toUnfence))
	if problem != "" {
		problem = " (" + problem + ")"
	}
	if f.returnedUnfenced() {
		step.warn(v1alpha1.NodeFencing, ReasonTaintedButReady, "the node has the taint "+OutOfServiceTaint+
			" but is Ready, as before it was lost: a healthy node is not fenced, and its volumes are attached nowhere else; the fence is withdrawn. Take the taint away, or shut the node down"+problem)
		step.RemoveTaint = f.Node.OwnTaint
		return
	}
	step.say(v1alpha1.NodeFencing, ReasonSwitchedOff, "fencing is switched off for "+strings.Join(whose, ", ")+": the fence is withdrawn"+problem)
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
