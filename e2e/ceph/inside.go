package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fairlead-io/fairlead/e2e/machine"
)

// Packages are the Debian packages that have the programs.
var Packages = []string{"ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-common", "ceph-fuse", "iproute2", "util-linux"}

var programs = []string{
	"ceph", "rbd", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph-authtool", "monmaptool",
	"ip", "unshare", "nsenter", "mount",
}

// directoryVariable names the folder of the files of a run.
const directoryVariable = "FAIRLEAD_CEPH_DIRECTORY"

// Inside runs a function in a machine of its own (see machine.Run), and returns the exit status. The function gets an empty
// directory, which is removed after it. Its context ends with a signal.
func Inside(run func(ctx context.Context, directory string) error) (status int) {
	directory := os.Getenv(directoryVariable)
	if directory == "" {
		var err error
		if directory, err = prepare(); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			return 1
		}
		defer os.RemoveAll(directory) // nothing of the machine runs any more
	}
	return machine.Run(machine.Spec{}, func() int {
		ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer cancel()
		if err := run(ctx, directory); err != nil {
			return 1
		}
		return 0
	})
}

func prepare() (directory string, err error) {
	if why := machine.Unavailable(); why != "" {
		return "", errors.New(why)
	}
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("there is no %s: apt-get install --no-install-recommends %s", strings.Join(missing, ", "), strings.Join(Packages, " "))
	}
	if directory, err = os.MkdirTemp("", "fairlead-ceph-"); err != nil {
		return "", err
	}
	for _, sub := range []string{"run", "log", "mnt"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(directory, sub), 0o755))
	}
	return directory, errors.Join(err, os.Setenv(directoryVariable, directory))
}
