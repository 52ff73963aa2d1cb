package nodes

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// needed programs of the machine, and Debian's packages that have them. A name with a slash is a file.
var needed = map[string]string{
	"containerd": "containerd", "ctr": "containerd", "runc": "runc",
	"ip": "iproute2", "nft": "nftables", "conntrack": "conntrack",
	"nsenter": "util-linux", "losetup": "mount", "mount": "mount",
	"mkfs.ext4": "e2fsprogs", "curl": "curl", "bash": "bash",
	"ganesha.nfsd": "nfs-ganesha", "/usr/lib/x86_64-linux-gnu/ganesha/libfsalvfs.so": "nfs-ganesha-vfs",
	"rpcbind":      "rpcbind",
	"/bin/busybox": "busybox-static",
}

// MissingPackages of Debian, in order.
func MissingPackages() []string {
	var packages []string
	for program, name := range needed {
		_, err := exec.LookPath(program)
		if strings.Contains(program, "/") {
			_, err = os.Stat(program)
		}
		if err != nil {
			packages = append(packages, name)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// Unavailable says why there can be no real nodes here, and what to do; it is empty where there can be.
func Unavailable() string {
	if why := machine.Unavailable(); why != "" {
		return why
	}
	if runtime.GOARCH != "amd64" {
		return "images of real nodes are made for amd64 only"
	}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return "real nodes need cgroup v1, and this machine has cgroup v2"
	}
	if packages := MissingPackages(); len(packages) > 0 {
		return "programs are missing; on Debian: apt-get install --no-install-recommends " + strings.Join(packages, " ")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return "the kernel has no FUSE"
	}
	return ""
}
