package nfs

import "net/netip"

// Exposure is how clients reach an NFS service.
type Exposure string

const (
	// Stable: one ClusterIP for all clients, which points to one backend at a time.
	Stable Exposure = "Stable"
	// PerNode: each node mounts the address of its backend.
	PerNode Exposure = "PerNode"
	// PerNodeStable: each node mounts the ClusterIP of a slot, which points to one backend at a time.
	PerNodeStable Exposure = "PerNodeStable"
)

// Numbers of slots. Each slot is a Service with a ClusterIP of its own.
const (
	// SlotsPerBackend is how many slots a backend has by default at least, so that several others share its nodes when it fails.
	SlotsPerBackend = 4
	MaxSlots        = 4096
)

// CheckFamilies reports backends of two address families behind one ClusterIP.
func CheckFamilies(field string, exposure Exposure, backends []Backend) Problems {
	var problems Problems
	if v4, v6 := families(backends); exposure != PerNode && v4.IsValid() && v6.IsValid() {
		problems.Add(field, "%s and %s differ in address family, and a ClusterIP reaches one: use addresses of one family, or exposure %s", v4, v6, PerNode)
	}
	return problems
}

// families returns the first address of each family.
func families(backends []Backend) (v4, v6 netip.Addr) {
	for _, b := range backends {
		switch a := b.Addr.Addr(); {
		case a.Is4() && !v4.IsValid():
			v4 = a
		case a.Is6() && !v6.IsValid():
			v6 = a
		}
	}
	return v4, v6
}
