//go:build linux

package nodes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// devices is a folder that each node has in memory. The machine's own is empty.
const devices = "/dev/longhorn"

// removeLeftovers removes what outlives the processes of nodes, also those of a run that was killed.
func removeLeftovers() error {
	return errors.Join(detachLoops("/node-"), removeCgroups())
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
