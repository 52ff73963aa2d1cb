package sandbox

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startTied starts a process that ends when this one does, however it ends. The
// kernel ties it to the thread that forked it, so that thread is kept.
func startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		select {} // a thread that ends takes the process along
	}()
	return <-started
}
