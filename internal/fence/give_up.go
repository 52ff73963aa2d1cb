package fence

import (
	"fmt"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// GiveUp says when a fenced and drained machine whose Node was deleted is unfenced without an operator. The zero
// value is never: a missing Node does not prove that the machine is off.
type GiveUp struct {
	// AddressTaken: when a Ready node has its address, for providers that never reuse the address of a running machine.
	AddressTaken bool
	// After the machine was lost; 0: never.
	After time.Duration
}

// giveUpBy names the configuration where an override names an operator.
const giveUpBy = "fencing.giveUp"

// givenUp is the override in effect: the operator's, or one that the configuration gives.
func (f Facts) givenUp() Override {
	s := f.Status
	if f.Override.Gate != "" || !f.gone() || f.Policy.GiveUp == (GiveUp{}) {
		return f.Override
	}
	o := Override{Gate: GateUnfence, By: giveUpBy, Reason: "it was given up", Scope: Scope(s), At: f.Now}
	if s.Phase == v1alpha1.NodeUnfencing && s.LostSince != nil {
		return o // unfencing that has begun is finished: the volumes are released
	}
	if s.Phase != v1alpha1.NodeDrained || len(f.Left) > 0 {
		return f.Override
	}
	age, known := f.since(s.LostSince)
	if after := f.Policy.GiveUp.After; after > 0 && known && age >= after {
		o.Reason = fmt.Sprintf("it was lost more than %s ago", after)
		return o
	}
	if f.Policy.GiveUp.AddressTaken {
		if address, who := f.taker(); who != "" {
			o.Reason = fmt.Sprintf("its address %s is one of %s now", address, who)
			return o
		}
	}
	return f.Override
}

// taker is the Ready node that now has an address which the machine had when it was last seen. The machine itself
// under another Node does not count.
func (f Facts) taker() (address, who string) {
	for _, i := range f.Status.Identities {
		for _, a := range i.Addresses {
			prefix, err := ParseClientCIDR(a.CIDR)
			if err != nil || a.Earlier {
				continue
			}
			for _, o := range f.Others {
				if o.Node.Ready && o.hasToday(prefix.Addr()) && f.isAnother(o.Node.Machine) {
					return prefix.Addr().String(), f.nameOf(o)
				}
			}
		}
	}
	return "", ""
}

// isAnother: two system UUIDs tell two machines apart; without both, it may be this machine.
func (f Facts) isAnother(m v1alpha1.MachineIdentity) bool {
	was := f.Status.Node.SystemUUID
	return was != "" && m.SystemUUID != "" && m.SystemUUID != was
}

// lookWhenGivenUp schedules a look for when the machine may be given up.
func (f Facts) lookWhenGivenUp(step *Step) {
	s := step.Status
	if f.Policy.GiveUp.After == 0 || !f.gone() || s.Phase != v1alpha1.NodeDrained || s.LostSince == nil {
		return
	}
	if wait := f.Policy.GiveUp.After - f.Now.Sub(s.LostSince.Time); wait > 0 {
		step.lookAgain(wait)
	}
}
