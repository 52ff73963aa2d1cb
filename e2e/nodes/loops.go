//go:build linux

package nodes

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// detachLoops detaches loop devices whose file was below a folder of that name: they stay when the process that served
// the file has ended.
func detachLoops(name string) error {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	var problems []error
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(backing), name+"/") {
			continue
		}
		device := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(file)))
		if out, err := exec.Command("losetup", "-d", device).CombinedOutput(); err != nil {
			problems = append(problems, errors.New(strings.TrimSpace(string(out))))
		}
	}
	return errors.Join(problems...)
}
