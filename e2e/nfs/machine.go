package nfs

import (
	"net/netip"
	"os"
	"path/filepath"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// Addresses in the machine.
var (
	// serverNetwork is where NFS servers listen.
	serverNetwork = netip.MustParsePrefix("10.77.0.0/16")
	// podNetwork has the addresses of simulated pods and nodes.
	podNetwork = netip.MustParsePrefix("10.244.0.0/16")
	// serviceNetwork is that of ClusterIPs: kube-proxy sends them on.
	serviceNetwork = netip.MustParsePrefix("10.96.0.0/16")
)

// Machine in which NFS servers have addresses that EndpointSlices may name: an API
// server refuses those of a loopback.
func Machine() machine.Spec {
	return machine.Spec{
		Addresses: []netip.Prefix{serverNetwork, podNetwork},
		Routed:    []netip.Prefix{serviceNetwork},
		Source:    podNetwork.Addr().Next(),
		// The kubelet's folders, for the node plugin.
		Folders: []string{"/var/lib"},
		// mount(8) looks for helpers there only.
		Added: map[string]string{"/sbin/mount.nfs": mountHelper()},
	}
}

// mountHelper is an NFSv3 client in FUSE (e2e/nfsmount).
func mountHelper() string {
	if path := os.Getenv("NFS_MOUNT_BINARY"); path != "" {
		return path
	}
	path, err := filepath.Abs("../../bin/nfsmount")
	if err != nil {
		return ""
	}
	return path
}

// ServerAddress is the address of the n-th NFS server, from 1.
func ServerAddress(n int) netip.Addr {
	a := serverNetwork.Addr().As4()
	a[2], a[3] = byte(n>>8), byte(n)
	return netip.AddrFrom4(a)
}
