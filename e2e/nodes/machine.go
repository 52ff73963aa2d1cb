//go:build linux

package nodes

import (
	"os"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// iscsiadm answers longhorn-manager, which asks each node for its version. No iSCSI is used.
const iscsiadm = "/fairlead-nodes/iscsiadm"

// Machine is for a cluster, whose nodes end with it. Nodes use its programs.
func Machine() machine.Spec {
	return machine.Spec{
		Folders: []string{"/var/lib"},
		Files:   []machine.File{{Path: iscsiadm, Text: "#!/bin/sh\necho iscsiadm version 2.1.8\n", Program: true}},
		// Longhorn's CSI plugin mounts in its container or on the node, as its settings say.
		Added: map[string]string{"/usr/sbin/iscsiadm": iscsiadm, "/usr/sbin/mount.nfs": os.Getenv(NFSMountVariable)},
	}
}
