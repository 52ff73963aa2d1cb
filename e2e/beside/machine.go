package beside

import (
	"net/netip"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// engines is where longhorn-manager runs the engines' programs; it looks in nodeEngines whether the node has them.
const (
	engines     = "/engine-binaries"
	nodeEngines = "/var/lib/longhorn" + engines
)

// Addresses of Longhorn's Services, as longhorn.yaml has them.
var serviceAddresses = map[string]string{
	"longhorn-backend":            "10.96.95.0",
	"longhorn-conversion-webhook": "10.96.95.1",
	"longhorn-admission-webhook":  "10.96.95.2",
	"longhorn-recovery-backend":   "10.96.95.3",
}

// Machine is what longhorn-manager needs of a machine: every address of Services,
// simulated pods and storage networks reaches what listens here, and what the manager
// looks for on a node is there.
func Machine() machine.Spec {
	spec := machine.Spec{
		Hosts:   map[string]netip.Addr{},
		Folders: []string{"/var/lib", "/run"}, // the manager stores in /var/lib/longhorn, and has its account in /run
		Files: []machine.File{
			{Path: "/var/lib/longhorn/README", Text: "the default disk of a simulated Longhorn\n"},
			{Path: peerDisk + "/README", Text: "the disk of another simulated node\n"},
			{Path: socketFolder + "/README", Text: "where the CSI driver listens\n"},
			{Path: engines + "/README", Text: "the programs of engines\n"},
		},
		Binds:    map[string]string{"/host/proc": "/proc"},
		Programs: []machine.File{{Path: "iscsiadm", Text: "#!/bin/sh\necho iscsiadm version 2.1.8\n"}},
	}
	// Services, pods of the nodes, and the two networks of the sandbox.
	for _, prefix := range []string{"10.96.0.0/16", "10.244.0.0/16", "192.168.50.0/24", "192.168.60.0/24"} {
		spec.Addresses = append(spec.Addresses, netip.MustParsePrefix(prefix))
	}
	for name, address := range serviceAddresses {
		for _, suffix := range []string{"", ".longhorn-system", ".longhorn-system.svc", ".longhorn-system.svc.cluster.local"} {
			spec.Hosts[name+suffix] = netip.MustParseAddr(address)
		}
	}
	return spec
}
