//go:build unix && !linux

package process

import "syscall"

// tiedToParent can't do here what it does on Linux: a parent killed with SIGKILL
// leaves its children running. Every other way to end stops them.
func tiedToParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
