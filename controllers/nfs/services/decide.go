package services

import (
	"fmt"
	"net/netip"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/definition"
)

// decide writes into status which backend each address should point to.
func (p *pass) decide(status *v1alpha1.NFSServiceStatus) {
	switch p.spec.Exposure {
	case nfs.Stable:
		p.decideStable(status)
	case nfs.PerNodeStable:
		p.decideSlots(status)
	}
}

func (p *pass) decideStable(status *v1alpha1.NFSServiceStatus) {
	current, to := addrPort(status.Backend), definition.ChooseStable(p.service, p.members)
	status.Backend = text(to)
	if current.IsValid() && to != current {
		reason := assign.Leaves(p.members, current)
		if p.dead(current) && reason != assign.Gone {
			reason = assign.Down
		}
		nodes := 0
		p.Pools.View(p.key, func(pool *assign.Pool) { nodes = pool.AddressNodes(definition.Published(status.Address, p.spec.Port)) })
		p.addMove("the service's address", reason, current, to, nodes)
	}
}

// decideSlots adds slots that are missing, and points slots to living backends.
func (p *pass) decideSlots(status *v1alpha1.NFSServiceStatus) {
	for len(status.Slots) < int(p.spec.Slots) {
		status.Slots = append(status.Slots, v1alpha1.NFSSlotStatus{})
	}
	for _, m := range assign.Repoint(p.slots(status), definition.Reachable(status, p.members), p.spec.SlotRules()) {
		if m.Slot == len(status.Slots) {
			status.Slots = append(status.Slots, v1alpha1.NFSSlotStatus{})
		}
		status.Slots[m.Slot].Backend = text(m.To)
		if m.Reason != assign.New {
			p.addMove(fmt.Sprintf("slot %d", m.Slot), m.Reason, m.From, m.To, m.Nodes)
		}
	}
}

// slots are those of a status, with their users.
func (p *pass) slots(status *v1alpha1.NFSServiceStatus) []assign.Slot {
	slots := definition.Slots(status)
	p.Pools.View(p.key, func(pool *assign.Pool) { pool.Slots(slots, definition.SlotAddresses(status, p.spec.Port)) })
	return slots
}

// moved reports whether status leads addresses to other backends than before.
func moved(before, after *v1alpha1.NFSServiceStatus) bool {
	if before.Backend != after.Backend || len(before.Slots) != len(after.Slots) {
		return true
	}
	for i := range after.Slots {
		if before.Slots[i].Backend != after.Slots[i].Backend {
			return true
		}
	}
	return false
}

func addrPort(text string) netip.AddrPort {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}
	}
	return a
}

func text(a netip.AddrPort) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}
