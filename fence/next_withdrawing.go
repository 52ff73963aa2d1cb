package fence

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A fence that is asked for and not confirmed may be done at any time, or may have
// been done. While no volume was let go of, it can be given up, without a boot: it
// is taken back like one that stands.

// mayHaveLetGo tells whether volumes may be in use elsewhere on account of a fence.
func (f Facts) mayHaveLetGo(r v1alpha1.Fence) bool {
	return r.LetGo || r.State == v1alpha1.FenceFenced || f.Override.Gate == GateAttach
}

// backUnfenced: the node is Ready in the boot in which a fence was asked for, and
// nothing of this incident has let a volume go.
func (f Facts) backUnfenced() bool {
	return f.Node.Ready && !f.gone() && f.Node.Machine.BootID == f.Status.Node.BootID && f.asked() &&
		!slices.ContainsFunc(f.Status.Fences, func(r v1alpha1.Fence) bool { return r.Incident == f.Status.Incident && f.mayHaveLetGo(r) })
}

// comeBackUnfenced: from here on it is a node like any other that was lost and came back.
func (f Facts) comeBackUnfenced(step *Step) {
	s := &step.Status
	if slices.ContainsFunc(s.Fences, func(r v1alpha1.Fence) bool { return r.Incident != s.Incident }) {
		f.comeBack(step) // an earlier boot is kept out still
		return
	}
	s.Volumes, s.LostSince = union(f.lingering(step), f.Holding), nil
	f.record(s)
	f.letIn(step)
	step.say(v1alpha1.NodeUnfencing, ReasonUnfencing, "the node is Ready again, as before it was lost, and no volume was let go of: what was asked for is taken back")
}

// withdrawn tells whether a fence of this incident is not wanted any more.
func (f Facts) withdrawn(r v1alpha1.Fence) bool {
	return r.Incident == f.Status.Incident && !f.mayHaveLetGo(r) && (f.backUnfenced() || f.Policy.mode(r.Driver) != ModeFence)
}

// takeBackWithdrawn takes back what is withdrawn, and returns whose it is.
func (f Facts) takeBackWithdrawn(step *Step) (whose []string) {
	s := &step.Status
	shared := f.sharedWith() != ""
	var left []v1alpha1.Fence
	for _, r := range s.Fences {
		if !f.withdrawn(r) {
			left = append(left, r)
			continue
		}
		whose = append(whose, keyOfFence(r).String())
		n, there := f.object(r.Name)
		switch {
		case r.State != v1alpha1.FenceUnfencing && r.State != v1alpha1.FenceLeaving:
			r.State, r.Message, r.Failures, r.FailedUID = v1alpha1.FenceUnfencing, "", 0, ""
			r.Since = metav1.NewTime(f.Now.Truncate(time.Second))
		case f.keptOutBesides(r):
			// Unfencing would undo that. The record stays, and is taken back with it.
			if there && !n.Deleting {
				step.Delete = append(step.Delete, n)
			}
		case f.takeBack(step, &r, shared):
			continue
		}
		left = append(left, r)
	}
	s.Fences = left
	if len(whose) > 0 {
		step.lookAgain(refusedAgain)
	}
	return whose
}

// keptOutBesides tells whether another fence of this node, which is not withdrawn, has
// an address of this one: at one storage cluster, all drivers share one block list.
func (f Facts) keptOutBesides(r v1alpha1.Fence) bool {
	return slices.ContainsFunc(f.Status.Fences, func(o v1alpha1.Fence) bool {
		return o.Name != r.Name && !f.withdrawn(o) && slices.ContainsFunc(o.CIDRs, func(c string) bool { return slices.Contains(r.CIDRs, c) })
	})
}

// sayWithdrawn says of what is taken back why it is, and what keeps it from being so.
func (f Facts) sayWithdrawn(step *Step, whose []string) {
	problem := f.sharedWith()
	if i := slices.IndexFunc(step.Status.Fences, func(r v1alpha1.Fence) bool { return f.withdrawn(r) && r.Message != "" }); problem == "" && i >= 0 {
		problem = keyOfFence(step.Status.Fences[i]).String() + ": " + step.Status.Fences[i].Message
	}
	if i := slices.IndexFunc(step.Status.Fences, func(r v1alpha1.Fence) bool { return f.withdrawn(r) && f.notAnswered(r) }); problem == "" && i >= 0 {
		problem = noAnswer
	}
	if problem != "" {
		problem = " (" + problem + ")"
	}
	if f.backUnfenced() {
		step.warn(v1alpha1.NodeFencing, ReasonTaintedButReady, "the node has the taint "+OutOfServiceTaint+
			" but is Ready, as before it was lost: a healthy node is not fenced, and its volumes are attached nowhere else; what was asked for is taken back. Take the taint away, or shut the node down"+problem)
		step.RemoveTaint = f.Node.OwnTaint
		return
	}
	step.say(v1alpha1.NodeFencing, ReasonSwitchedOff, "fencing is switched off for "+strings.Join(whose, ", ")+": what was asked for is taken back"+problem)
	step.Warning = problem != ""
}
