package definition

import (
	"net/netip"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
)

// Members are the backends in the status, with their health. Malformed records, which the controller never writes, are
// left out.
func Members(status *v1alpha1.NFSServiceStatus) []nfs.Backend {
	var members []nfs.Backend
	for _, b := range status.Backends {
		addr, err := netip.ParseAddrPort(b.Address)
		if err != nil {
			continue
		}
		members = append(members, nfs.Backend{
			Addr: addr, Weight: min(max(b.Weight, nfs.DefaultWeight), nfs.MaxWeight), Zone: b.Zone, Drain: b.Drain, Source: nfs.Source(b.Source),
			Health: nfs.ParseHealth(b.Health),
		})
	}
	return members
}

// Slots are the slots that the status records, by index. A pool knows their users: see assign.Pool.Slots.
func Slots(status *v1alpha1.NFSServiceStatus) []assign.Slot {
	slots := make([]assign.Slot, len(status.Slots))
	for i, s := range status.Slots {
		slots[i] = assign.Slot{Backend: addrPort(s.Backend)}
	}
	return slots
}

// SlotAddresses are the addresses of slots as VolumeAttachments carry them, by index; empty without one.
func SlotAddresses(status *v1alpha1.NFSServiceStatus, service uint16) []string {
	addresses := make([]string, len(status.Slots))
	for i, s := range status.Slots {
		addresses[i] = Published(s.Address, service)
	}
	return addresses
}

// Reachable are the members of the address family of the service's ClusterIPs; all members while the service has no
// ClusterIP.
func Reachable(status *v1alpha1.NFSServiceStatus, members []nfs.Backend) []nfs.Backend {
	family := familyOf(status.Address)
	for i := 0; i < len(status.Slots) && family == ""; i++ {
		family = familyOf(status.Slots[i].Address)
	}
	var reachable []nfs.Backend
	for _, m := range members {
		if family == "" || publish.FamilyOf(m.Addr.Addr()) == family {
			reachable = append(reachable, m)
		}
	}
	return reachable
}

func familyOf(clusterIP string) publish.Family {
	a, err := netip.ParseAddr(clusterIP)
	if err != nil {
		return ""
	}
	return publish.FamilyOf(a)
}

// Addresses are what nodes mount, in the form of VolumeAttachments (nfs.Backend.Address), each with its backend. service is
// the port that clients mount. An unpublished address leads to no backend, since another Service may have that address.
func Addresses(exposure nfs.Exposure, status *v1alpha1.NFSServiceStatus, members []nfs.Backend, slots []assign.Slot, service uint16) map[string]netip.AddrPort {
	addresses := map[string]netip.AddrPort{}
	switch exposure {
	case nfs.PerNodeStable:
		for i, address := range SlotAddresses(status, service) {
			if address != "" && status.Slots[i].Unpublished == "" {
				addresses[address] = slots[i].Backend
			}
		}
	case nfs.Stable:
		if address := Published(status.Address, service); address != "" && status.Unpublished == "" {
			addresses[address] = addrPort(status.Backend)
		}
	default:
		for _, m := range members {
			addresses[m.Address()] = m.Addr
		}
	}
	return addresses
}

// ChooseStable is the backend that the address of exposure Stable should point to.
func ChooseStable(s *v1alpha1.NFSService, members []nfs.Backend) netip.AddrPort {
	return publish.ChooseStable(s.Namespace+"/"+s.Name, familyOf(s.Status.Address), addrPort(s.Status.Backend), members)
}

// Published is a ClusterIP as VolumeAttachments carry it; empty if it is none.
func Published(clusterIP string, service uint16) string {
	a, err := netip.ParseAddr(clusterIP)
	if err != nil {
		return ""
	}
	return nfs.Backend{Addr: netip.AddrPortFrom(a, service)}.Address()
}

func addrPort(text string) netip.AddrPort {
	a, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}
	}
	return a
}
