package pools

import (
	"cmp"
	"net/netip"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
)

// Targets are the servers that a service's status names, with the addresses by
// which nodes reach them: nothing is handed out that is not recorded.
func Targets(service *v1alpha1.NFSService) []assign.Target {
	members := Members(service.Status.Backends)
	switch nfs.Exposure(service.Spec.Exposure) {
	case nfs.Stable:
		return stableTargets(service, members)
	case nfs.PerNode:
		return assign.PerNodeTargets(members)
	}
	slots := make([]assign.Slot, len(service.Status.Slots))
	addresses := make([]string, len(slots))
	for i, s := range service.Status.Slots {
		slots[i].Backend, _ = netip.ParseAddrPort(s.Backend)
		addresses[i] = MountAddress(s.Address, service.Spec.Port)
	}
	return assign.SlotTargets(members, slots, addresses)
}

func stableTargets(service *v1alpha1.NFSService, members []nfs.Member) []assign.Target {
	targets := make([]assign.Target, len(members))
	address := MountAddress(service.Status.Address, service.Spec.Port)
	for i, m := range members {
		targets[i].Member = m
		if m.Addr.String() == service.Status.Backend && address != "" {
			targets[i].Addresses = []string{address}
		}
	}
	return targets
}

// Members are the backends of a status. An address that is none is left out.
func Members(list []v1alpha1.NFSBackendStatus) []nfs.Member {
	var members []nfs.Member
	for _, b := range list {
		addr, err := netip.ParseAddrPort(b.Address)
		if err != nil {
			continue
		}
		members = append(members, nfs.Member{
			Backend: nfs.Backend{Addr: addr, Weight: cmp.Or(b.Weight, nfs.DefaultWeight), Zone: b.Zone, Drain: b.Drain, Source: nfs.Source(b.Source)},
			Health:  nfs.ParseHealth(b.Health),
		})
	}
	return members
}

// MountAddress is a ClusterIP as attachments carry it (nfs.Backend.Address); empty if there is none.
func MountAddress(clusterIP string, port int32) string {
	address, err := netip.ParseAddr(clusterIP)
	if err != nil {
		return ""
	}
	return nfs.Backend{Addr: netip.AddrPortFrom(address, uint16(cmp.Or(port, nfs.DefaultPort)))}.Address()
}
