package fence

import (
	"fmt"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// otherName is the new node of a gone machine: the only Node with its system UUID, in another boot, Ready for long
// enough, and created after the loss. An older Node, or one of two, may be a clone with the same UUID.
func (f Facts) otherName() string {
	was := f.Status.Node
	if was.SystemUUID == "" || was.BootID == "" || f.Status.LostSince == nil {
		return ""
	}
	name := ""
	for _, o := range f.Others {
		n := o.Node
		if !n.Exists || n.Machine.SystemUUID != was.SystemUUID {
			continue
		}
		rebooted := n.Machine.BootID != "" && n.Machine.BootID != was.BootID
		ready, _ := f.since(o.Status.ReadySince)
		if name != "" || !rebooted || !n.Ready || ready < f.Policy.ReadyFor || !n.Created.After(f.Status.LostSince.Time) {
			return ""
		}
		name = n.Name
	}
	return name
}

// runsElsewhere ends the incident of a machine that rebooted under another name: it has no old mounts, so it is unfenced
// without an operator. Volumes shown under its former name stay on record until Kubernetes detaches them.
func (f Facts) runsElsewhere(step *Step) {
	s := &step.Status
	s.Volumes = f.Holding
	what := fmt.Sprintf("the machine has rebooted, and is node %s now", s.RunsAs)
	switch {
	case len(s.Fences) == 0 && len(s.Volumes) == 0 && f.Status.RunsAs != "":
		step.Forget = true
	case len(s.Fences) == 0 && len(s.Volumes) == 0:
		step.say(v1alpha1.NodeLost, ReasonRenamed, what)
	case len(s.Fences) == 0:
		step.say(v1alpha1.NodeLost, ReasonRenamed, what+"; attachments or pods of its former name are left: "+Few(f.Left))
	case s.Phase != v1alpha1.NodeUnfencing:
		f.startUnfencing(step)
		step.say(v1alpha1.NodeUnfencing, ReasonUnfencing, what+": unfencing it")
	default:
		f.unfencing(step)
	}
}
