//go:build linux

package nodes

import (
	"os"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// iscsiadm is what longhorn-manager asks a node for, for its version. Nothing here speaks iSCSI.
const iscsiadm = "/fairlead-nodes/iscsiadm"

// Machine in which a cluster of nodes runs: it ends with all of them. Nodes have its programs.
func Machine() machine.Spec {
	return machine.Spec{
		Folders: []string{"/var/lib"},
		Files:   []machine.File{{Path: iscsiadm, Text: "#!/bin/sh\necho iscsiadm version 2.1.8\n", Program: true}},
		// Longhorn's CSI plugin mounts in its container or on the node, as its settings say.
		Added: map[string]string{"/usr/sbin/iscsiadm": iscsiadm, "/usr/sbin/mount.nfs": os.Getenv(NFSMountVariable)},
	}
}
