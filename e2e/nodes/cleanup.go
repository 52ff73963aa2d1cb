//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// devices is a folder in memory on each node, and an empty folder of the machine.
const devices = "/dev/longhorn"

// lockFile is locked by each running cluster: only a cluster that is alone removes what earlier ones left. The file has the
// limit that the machine had before.
const lockFile = "/tmp/fairlead-nodes.lock"

// inotifyLimit is how many watchers of files a user may have. With the kernel's default, kubelets fail to start or miss
// CSI drivers.
const (
	inotifyLimit  = "/proc/sys/fs/inotify/max_user_instances"
	inotifyWanted = 8192
)

// abortConnections ends the connections of FUSE that serve the files behind loop devices, its arguments.
const abortConnections = `mountpoint -q /sys/fs/fuse/connections || mount -t fusectl none /sys/fs/fuse/connections || exit
for device; do
	[ -b "$device" ] || continue
	number=$(losetup --list --noheadings --output BACK-MAJ:MIN "$device" | tr -d ' ')
	connection=/sys/fs/fuse/connections/${number#0:}
	[ ! -e "$connection/abort" ] || echo 1 >"$connection/abort" # a file on a disk has another major number than 0
done`

// leftDevices are the loop devices of all volumes on this machine: see fileName in e2e/longhornpods/iscsi/longhorndev.
const leftDevices = `set -- $(losetup --list --noheadings --output NAME,BACK-FILE | sed -n 's,  */volume$,,p')
`

// folders of test clusters: gigabytes each.
var folders = filepath.Join(os.TempDir(), "fairlead-nodes")

// endLeft ends what outlived clusters that were killed: engines that wait for their own volumes, empty cgroups, and folders.
// The kernel removes the rest, namespaces and loop devices, with the last process.
func endLeft(ctx context.Context) error {
	if _, err := run(ctx, "sh", "-c", leftDevices+abortConnections); err != nil {
		return fmt.Errorf("ending the volumes of a cluster that was killed: %w", err)
	}
	if err := os.RemoveAll(folders); err != nil {
		return err
	}
	return eventually.Until(ctx, "the end of a cluster that was killed", 10*time.Second, func() error { return removeCgroups(allCgroups) })
}

// enter registers a cluster. The first one removes what clusters that were killed have left.
func enter(ctx context.Context) (leave func() error, err error) {
	file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	alone := func() bool { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }
	if alone() {
		err = errors.Join(endLeft(ctx), raiseLimit())
	}
	if err = errors.Join(err, syscall.Flock(int(file.Fd()), syscall.LOCK_SH), os.MkdirAll(devices, 0o755)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		defer file.Close()
		if alone() {
			return errors.Join(restoreLimit(), removeCgroups(allCgroups), os.Remove(devices))
		}
		return nil
	}, nil
}

func raiseLimit() error {
	before, err := os.ReadFile(inotifyLimit)
	if err != nil {
		return err
	}
	if limit, err := strconv.Atoi(strings.TrimSpace(string(before))); err != nil || limit >= inotifyWanted {
		return err
	}
	return errors.Join(os.WriteFile(lockFile, before, 0o600), os.WriteFile(inotifyLimit, []byte(strconv.Itoa(inotifyWanted)), 0o644))
}

func restoreLimit() error {
	before, err := os.ReadFile(lockFile)
	if err != nil || len(before) == 0 {
		return err
	}
	return errors.Join(os.WriteFile(inotifyLimit, before, 0o644), os.Truncate(lockFile, 0))
}
