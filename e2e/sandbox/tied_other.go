//go:build !linux

package sandbox

import (
	"os/exec"
	"syscall"
)

// startTied starts a process in a group of its own. Only Linux can tie its end
// to ours; elsewhere Stop has to be reached.
func startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
