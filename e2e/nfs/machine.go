package nfs

import (
	"net/netip"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// Addresses in the machine.
var (
	// serverNetwork is where NFS servers listen.
	serverNetwork = netip.MustParsePrefix("10.77.0.0/16")
	// podNetwork has the addresses of simulated pods and nodes.
	podNetwork = netip.MustParsePrefix("10.244.0.0/16")
)

// Machine in which NFS servers have addresses that EndpointSlices may name: an API
// server refuses those of a loopback.
func Machine() machine.Spec {
	return machine.Spec{Addresses: []netip.Prefix{serverNetwork, podNetwork}}
}

// ServerAddress is the address of the n-th NFS server, from 1.
func ServerAddress(n int) netip.Addr {
	a := serverNetwork.Addr().As4()
	a[2], a[3] = byte(n>>8), byte(n)
	return netip.AddrFrom4(a)
}
