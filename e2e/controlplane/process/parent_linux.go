package process

import "syscall"

// tiedToParent makes the kernel end the child when its parent is gone, even if
// the parent was killed without a chance to clean up.
func tiedToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
