//go:build linux

package nodes

import (
	"errors"
	"os"
	"syscall"
)

// devices is a folder that each node has in memory. The machine's own is empty.
const devices = "/dev/longhorn"

// lockFile is locked by each running cluster, so that only a cluster that is alone removes what earlier ones left.
const lockFile = "/tmp/fairlead-nodes.lock"

// enter registers a cluster. The first one removes what outlived the processes of clusters that were killed: cgroups. The
// kernel removes the rest, namespaces and loop devices, with the last process.
func enter() (leave func(), err error) {
	file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if alone := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); alone == nil {
		err = removeCgroups(allCgroups)
	}
	err = errors.Join(err, syscall.Flock(int(file.Fd()), syscall.LOCK_SH), os.MkdirAll(devices, 0o755))
	return func() { _ = file.Close() }, err
}
