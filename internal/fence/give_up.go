package fence

import (
	"fmt"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// giveUpBy names the configuration where an override names an operator.
const giveUpBy = "fencing.giveUp"

// givenUp is the override in effect: the operator's, or one that the configuration gives.
func (f Facts) givenUp() Override {
	s := f.Status
	if f.Override.Gate != "" || !f.gone() || f.Policy.GiveUpAfter == 0 {
		return f.Override
	}
	o := Override{Gate: GateUnfence, By: giveUpBy, Reason: "it was given up", Scope: Scope(s), At: f.Now}
	if s.Phase == v1alpha1.NodeUnfencing && s.LostSince != nil {
		return o // unfencing that has begun is finished: the volumes are released
	}
	if s.Phase != v1alpha1.NodeDrained || len(f.Left) > 0 {
		return f.Override
	}
	age, known := f.elapsed(s.LostSince)
	if after := f.Policy.GiveUpAfter; known && age >= after {
		o.Reason = fmt.Sprintf("it was lost more than %s ago", after)
		return o
	}
	return f.Override
}

// lookWhenGivenUp schedules a look for when the machine may be given up.
func (f Facts) lookWhenGivenUp(step *Step) {
	s := step.Status
	if f.Policy.GiveUpAfter == 0 || !f.gone() || s.Phase != v1alpha1.NodeDrained || s.LostSince == nil {
		return
	}
	age, _ := f.elapsed(s.LostSince)
	if wait := f.Policy.GiveUpAfter - age; wait > 0 {
		step.lookAgain(wait)
	}
}
