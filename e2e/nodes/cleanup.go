//go:build linux

package nodes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// devices is a folder that each node has in memory. The machine's own is empty.
const devices = "/dev/longhorn"

// lockFile is locked by each running cluster, so that only a cluster that is alone removes what earlier ones left.
const lockFile = "/tmp/fairlead-nodes.lock"

// enter registers a cluster. The first one removes what outlived the processes of clusters that were killed.
func enter() (leave func(), err error) {
	file, err := os.OpenFile(lockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if alone := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); alone == nil {
		err = errors.Join(detachLoops("/node-"), removeCgroups(allCgroups))
	}
	err = errors.Join(err, syscall.Flock(int(file.Fd()), syscall.LOCK_SH), os.MkdirAll(devices, 0o755))
	return func() { _ = file.Close() }, err
}

// detachLoops detaches loop devices whose file has that text in its path: they stay when the process that served the
// file has ended.
func detachLoops(text string) error {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	var problems []error
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(backing), text) {
			continue
		}
		device := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(file)))
		if out, err := exec.Command("losetup", "-d", device).CombinedOutput(); err != nil {
			problems = append(problems, fmt.Errorf("detaching %s: %s", device, strings.TrimSpace(string(out))))
		}
	}
	return errors.Join(problems...)
}
