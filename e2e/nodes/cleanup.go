//go:build linux

package nodes

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
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

// enter registers a cluster. The first one removes what outlived the processes of clusters that were killed: cgroups. The
// kernel removes the rest, namespaces and loop devices, with the last process.
func enter() (leave func() error, err error) {
	file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	alone := func() bool { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }
	if alone() {
		err = errors.Join(removeCgroups(allCgroups), raiseLimit())
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
