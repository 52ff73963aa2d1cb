package beside

import (
	"net/netip"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// Version of Longhorn that e2e/longhorn builds.
const Version = "v1.7.2"

const (
	engineImage = "longhornio/longhorn-engine:" + Version
	// engineFolder is where longhorn-manager runs the engine's program, and nodeEngineFolder where it
	// looks whether the node has it.
	engineFolder     = "/engine-binaries/longhornio-longhorn-engine-" + Version
	nodeEngineFolder = "/var/lib/longhorn" + engineFolder
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
		Folders: []string{"/var/lib"}, // the manager stores in /var/lib/longhorn
		Files: []machine.File{
			{Path: "/var/lib/longhorn/README", Text: "the default disk of a simulated Longhorn\n"},
			{Path: peerDisk + "/README", Text: "the disk of another simulated node\n"},
			{Path: socketFolder + "/README", Text: "where the CSI driver listens\n"},
			{Path: engineFolder + "/longhorn", Program: true, Text: engineProgram},
			{Path: nodeEngineFolder + "/longhorn", Program: true, Text: engineProgram},
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

// engineProgram prints what the engine of this version answers to `longhorn version`.
const engineProgram = `#!/bin/sh
echo '{"clientVersion": {"version": "` + Version + `", "gitCommit": "", "buildDate": "", "cliAPIVersion": 10, "cliAPIMinVersion": 3,
 "controllerAPIVersion": 5, "controllerAPIMinVersion": 3, "dataFormatVersion": 1, "dataFormatMinVersion": 1}, "serverVersion": null}'
`
