package ceph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Packages are the Debian packages that have the programs.
var Packages = []string{"ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-common", "ceph-fuse", "iproute2", "util-linux"}

var programs = []string{
	"ceph", "rbd", "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "ceph-fuse", "ceph-authtool", "monmaptool",
	"ip", "unshare", "nsenter", "mount",
}

// directoryVariable is set for processes inside, and names the folder of their files.
const directoryVariable = "FAIRLEAD_CEPH_DIRECTORY"

// Inside runs a function in namespaces of its own, by starting this program once
// more in them, with the same arguments; so it is to be called before anything
// else is done. The function gets an empty directory, which is removed after it.
// Its context ends with a signal, and with the process that was started first.
func Inside(run func(ctx context.Context, directory string) error) error {
	if directory := os.Getenv(directoryVariable); directory != "" {
		if os.Getpid() != 1 {
			return fmt.Errorf("%s is set, but this is not the first process of a namespace", directoryVariable)
		}
		return runInside(directory, run)
	}
	if os.Geteuid() != 0 {
		return errors.New("namespaces and OSDs need root")
	}
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("there is no %s: apt-get install --no-install-recommends %s",
			strings.Join(missing, ", "), strings.Join(Packages, " "))
	}
	directory, err := os.MkdirTemp("", "fairlead-ceph-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	return startInside(directory)
}

func startInside(directory string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := append([]string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", self}, os.Args[1:]...)
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), directoryVariable+"="+directory)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// Nothing is written to it. That it is at its end says that this process is gone.
	alive, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-signals:
		alive.Close()
		select {
		case err = <-ended:
		case <-time.After(30 * time.Second): // unshare takes all that is inside along
			err = errors.Join(cmd.Process.Kill(), <-ended)
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return ErrFailedInside
	}
	return err
}

// ErrFailedInside is a failure that was printed already.
var ErrFailedInside = errors.New("failed")

func runInside(directory string, run func(ctx context.Context, directory string) error) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	defer func() {
		// To the first process of a namespace these are all others in it, and no others.
		syscall.Kill(-1, syscall.SIGKILL)
		for range 50 { // until they have closed their files
			if os.RemoveAll(directory) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for _, sub := range []string{"run", "log", "mnt"} {
		if err := os.MkdirAll(filepath.Join(directory, sub), 0o755); err != nil {
			return err
		}
	}
	return run(ctx, directory)
}
