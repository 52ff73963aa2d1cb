package fence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const (
	// refusedAgain is how soon a refusal is looked at again although nothing was heard of.
	refusedAgain = 15 * time.Second
	// unanswered is after how long it is said that csi-addons does not answer.
	unanswered = 30 * time.Second
)

const changedMessage = "the NetworkFence was changed by somebody; it is made anew"

// fencing asks for a fence for each identity that the node's volumes need, and
// waits until each is confirmed. One that fails does not keep the others waiting.
func (f Facts) fencing(step *Step) {
	s := &step.Status
	s.Volumes = slices.DeleteFunc(union(s.Volumes, f.Holding), f.letGoUnfenced)
	switch {
	case f.Override.Gate == GateUnfence && f.sharedWith() == "":
		f.letIn(step)
		return
	case f.rebooted() && f.Node.Ready && len(s.Fences) > 0:
		f.comeBack(step)
		return
	case f.backUnfenced() && !f.Node.OutOfService:
		f.comeBackUnfenced(step)
		return
	case !f.asked() && (f.Node.Ready || !f.Node.OutOfService && !f.gone() || len(f.protected(s.Volumes)) == 0):
		f.watch(step) // nothing was asked for yet, and now it is not lost, or not to be fenced
		return
	}
	unsettled := f.settle(step)
	refused := append(f.ask(step, len(unsettled) == 0), f.follow(step)...)
	withdrawn := f.takeBackWithdrawn(step)

	waiting := f.waiting(s)
	reason, what := f.how()
	switch {
	case f.Override.Gate == GateUnfence:
		phase := v1alpha1.NodeFenced
		if len(refused)+len(waiting)+len(withdrawn) > 0 {
			phase = v1alpha1.NodeFencing
		}
		step.warn(phase, ReasonSharedAddress, f.sharedWith())
	case f.backUnfenced():
		f.sayWithdrawn(step, withdrawn)
	case f.Override.Gate == GateAttach && (len(refused) > 0 || len(waiting) > 0):
		step.warn(v1alpha1.NodeFencing, ReasonOverridden, fmt.Sprintf("its volumes may be attached elsewhere although it is not fenced: %s says %q", f.Override.By, f.Override.Reason))
	case len(refused) > 0:
		step.warn(v1alpha1.NodeFencing, refused[0].Reason, messages(refused))
		step.Refused = step.After == 0
		step.lookAgain(refusedAgain)
	case len(waiting) > 0:
		f.sayWaiting(step, waiting, unsettled)
	case len(withdrawn) > 0:
		f.sayWithdrawn(step, withdrawn)
	case f.Node.Ready:
		step.warn(v1alpha1.NodeFenced, ReasonNotRebooted, "the node is Ready again but has not booted since it was lost: it still has the mounts of before; reboot it")
	case len(f.Left) > 0:
		step.say(v1alpha1.NodeFenced, ReasonFenced, fmt.Sprintf("%s; fenced; still on it: %s", what, list(f.Left)))
	case f.gone():
		step.say(v1alpha1.NodeDrained, reason, f.deletedMessage())
	default:
		step.say(v1alpha1.NodeDrained, ReasonDrained, "fenced, and nothing is left on it; reboot it to bring it back")
	}
}

// asked tells whether a fence was asked for in this incident: then it may stand,
// and only a new boot is sure to be without the mounts of before.
func (f Facts) asked() bool { return asked(f.Status) }

func asked(s v1alpha1.NodeFenceStatus) bool {
	return slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.Incident == s.Incident })
}

// noAnswer is what to look at where csi-addons does nothing.
const noAnswer = "csi-addons has not answered; is its controller manager running, and is the driver's leader connected?"

// notAnswered tells whether a NetworkFence is there and csi-addons has long done nothing for it.
func (f Facts) notAnswered(r v1alpha1.Fence) bool {
	n, there := f.object(r.Name)
	return there && !n.failed() && f.Now.Sub(r.Since.Time) > unanswered
}

// sayWaiting says what a node waits for that is to be fenced; unsettled are NetworkFences
// of before, which keep others from being asked for.
func (f Facts) sayWaiting(step *Step, waiting, unsettled []v1alpha1.Fence) {
	for _, w := range waiting {
		if w.Message == changedMessage {
			step.warn(v1alpha1.NodeFencing, ReasonFencing, name(w.Driver, w.ClusterID)+": "+w.Message)
			return
		}
		if w.Message != "" {
			step.warn(v1alpha1.NodeFencing, ReasonDriverFailed, fmt.Sprintf("%s: %s (asked %d times; it is asked again)", name(w.Driver, w.ClusterID), w.Message, w.Failures+1))
			return
		}
	}
	step.lookAgain(unanswered + time.Second)
	message := "waiting for NetworkFence " + list(fenceNames(waiting))
	if len(unsettled) > 0 {
		message += ": NetworkFence " + list(fenceNames(unsettled)) + " of before would let the node in again, and has to be gone first"
	}
	switch {
	case slices.ContainsFunc(waiting, f.notAnswered):
		step.warn(v1alpha1.NodeFencing, ReasonUnanswered, message+": "+noAnswer)
	case slices.ContainsFunc(unsettled, f.notAnswered):
		step.warn(v1alpha1.NodeFencing, ReasonFencing, message+": "+noAnswer)
	default:
		step.say(v1alpha1.NodeFencing, ReasonFencing, message)
	}
}

func fenceNames(fences []v1alpha1.Fence) []string {
	var names []string
	for _, r := range fences {
		names = append(names, r.Name)
	}
	return names
}

// ask records a fence for each identity that has none in this incident.
func (f Facts) ask(step *Step, settled bool) []Refusal {
	s := &step.Status
	var refused []Refusal
	if f.backUnfenced() {
		return nil // it is well
	}
	for _, k := range keys(f.protected(s.Volumes)) {
		if slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.Incident == s.Incident && keyOfFence(r) == k }) {
			continue
		}
		if f.Policy.mode(k.driver) == ModeGuard {
			refused = append(refused, *refuse(ReasonGuardOnly, "%s: Fairlead is configured to guard only: fence the node by hand, then: %s", k, f.command(GateAttach)))
			continue
		}
		fence, r := f.request(k)
		switch {
		case r != nil:
			refused = append(refused, *r)
		case !settled:
			// An unfencing of before is still under way: it could undo this one.
		default:
			s.Fences = append(s.Fences, fence)
		}
	}
	return refused
}

// settle ends what an incident before this one, or what was withdrawn in this one and
// is wanted again, has left half done: an object that is Unfenced lets its addresses in again whenever csi-addons looks at it,
// so it must be gone before the same addresses are fenced. What has to go yet is returned.
func (f Facts) settle(step *Step) (unsettled []v1alpha1.Fence) {
	s := &step.Status
	for i := range s.Fences {
		r := &s.Fences[i]
		if f.withdrawn(*r) || r.State != v1alpha1.FenceUnfencing && r.State != v1alpha1.FenceLeaving {
			continue
		}
		if n, there := f.object(r.Name); there {
			unsettled = append(unsettled, *r)
			if !n.Deleting {
				step.Delete = append(step.Delete, n)
			}
			continue
		}
		r.State = v1alpha1.FenceRequested // it may be let in or not: it is told to once more at the end
	}
	return unsettled
}

// follow compares the fences of this incident with their objects. What speaks
// against one may have come up since it was asked for.
func (f Facts) follow(step *Step) []Refusal {
	s := &step.Status
	var refused []Refusal
	for i := range s.Fences {
		r := &s.Fences[i]
		if r.Incident != s.Incident || f.withdrawn(*r) || r.State == v1alpha1.FenceUnfencing || r.State == v1alpha1.FenceLeaving {
			continue
		}
		r.LetGo = f.mayHaveLetGo(*r)
		n, there := f.object(r.Name)
		if refusal := f.doubt(*r, there && n.Blocks()); refusal != nil {
			// If it stood, it may stand no more: it is made anew when that is settled.
			r.State, r.Message = v1alpha1.FenceRequested, ""
			refused = append(refused, *refusal)
			if there && !n.Deleting {
				step.Delete = append(step.Delete, n)
			}
			continue
		}
		switch {
		case !there:
			r.State, r.Message = v1alpha1.FenceRequested, ""
			step.Create = append(step.Create, object(f.Node.Name, s.Node.BootID, *r, false))
		case n.Deleting:
			r.State = v1alpha1.FenceRequested
		case !n.asked(*r):
			// Somebody changed it: only a new one is sure to be looked at.
			r.State, r.Message = v1alpha1.FenceRequested, changedMessage
			step.Delete = append(step.Delete, n)
		case n.Blocks():
			r.State, r.Message, r.LetGo = v1alpha1.FenceFenced, "", true
		case n.failed():
			r.State = v1alpha1.FenceRequested
			f.askAnew(step, r, n)
		default:
			r.State = v1alpha1.FenceRequested
		}
	}
	return refused
}

// doubt is what speaks against a fence that is recorded: of one that does not
// stand, all that would have spoken against asking for it; of one that does,
// that another object lets its addresses in.
func (f Facts) doubt(r v1alpha1.Fence, stands bool) *Refusal {
	k := keyOfFence(r)
	identity, _ := k.in(f.Status.Identities)
	for _, refusal := range []*Refusal{f.besideDriver(k), f.unproved(k, identity)} {
		if refusal != nil && !stands {
			return refusal
		}
	}
	for _, text := range r.CIDRs {
		prefix, err := ParseClientCIDR(text)
		if err != nil {
			return refuse(ReasonBadAddress, "%s: %v", k, err)
		}
		if !stands {
			if refusal := f.address(k, prefix.Addr()); refusal != nil {
				return refusal
			}
		}
		// That of another identity too: it lets the address in at the same storage.
		if refusal := f.leftover(k, prefix.Addr(), func(n NetworkFence) bool { return n.Name == r.Name }); refusal != nil {
			return refusal
		}
	}
	return nil
}

// askAnew replaces a NetworkFence that the driver has refused: csi-addons itself
// waits longer after each failure, up to a quarter of an hour. Deleting a
// NetworkFence does not unfence.
func (f Facts) askAnew(step *Step, r *v1alpha1.Fence, n NetworkFence) {
	r.Message = n.Message
	if n.UID == r.FailedUID { // the one that failed before; times would be of two clocks
		step.Delete = append(step.Delete, n)
		return
	}
	if wait := backoff(r.Failures) - f.Now.Sub(r.Since.Time); wait > 0 {
		step.lookAgain(wait)
		return
	}
	r.Failures, r.FailedUID = r.Failures+1, n.UID
	r.Since = metav1.NewTime(f.Now.Truncate(time.Second))
}

// backoff doubles from 5 s to 2 min.
func backoff(failures int) time.Duration {
	const first, most = 5 * time.Second, 2 * time.Minute
	wait := first
	for range min(failures, 10) {
		wait *= 2
	}
	return min(wait, most)
}

// waiting are the fences of this incident that are not confirmed, of storage that is
// switched off too, but for those that are withdrawn.
func (f Facts) waiting(s *v1alpha1.NodeFenceStatus) []v1alpha1.Fence {
	var list []v1alpha1.Fence
	for _, k := range keys(f.protected(s.Volumes)) {
		if !slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.Incident == s.Incident && keyOfFence(r) == k }) {
			list = append(list, v1alpha1.Fence{Name: "(not asked for yet)", Driver: k.driver, ClusterID: k.clusterID, Since: metav1.NewTime(f.Now)})
		}
	}
	for _, r := range s.Fences {
		if r.Incident == s.Incident && r.State != v1alpha1.FenceFenced && !f.withdrawn(r) {
			list = append(list, r)
		}
	}
	return list
}

func (f Facts) object(name string) (NetworkFence, bool) {
	i := slices.IndexFunc(f.Fences, func(n NetworkFence) bool { return n.Name == name })
	if i < 0 {
		return NetworkFence{}, false
	}
	return f.Fences[i], true
}

func messages(refused []Refusal) string {
	var all []string
	for _, r := range refused {
		all = append(all, r.Message)
	}
	return "not fenced: " + strings.Join(all, "; ")
}
