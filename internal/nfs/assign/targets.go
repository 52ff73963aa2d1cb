package assign

import "github.com/fairlead-io/fairlead/internal/nfs"

// PerNodeTargets exposes each backend by its own address (nfs.Backend.Address).
func PerNodeTargets(members []nfs.Member) []Target {
	targets := make([]Target, len(members))
	for i, m := range members {
		targets[i] = Target{Member: m, Addresses: []string{m.Address()}}
	}
	return targets
}

// SlotTargets exposes each backend by the ClusterIPs of the slots that point to
// it. clusterIPs are those of the slots, by index; empty while a slot has none.
func SlotTargets(members []nfs.Member, slots []Slot, clusterIPs []string) []Target {
	targets := make([]Target, len(members))
	for i, m := range members {
		targets[i].Member = m
		for s, slot := range slots {
			if slot.Backend == m.Addr && s < len(clusterIPs) && clusterIPs[s] != "" {
				targets[i].Addresses = append(targets[i].Addresses, clusterIPs[s])
			}
		}
	}
	return targets
}
