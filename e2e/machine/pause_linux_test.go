package machine

import (
	"os/exec"
	"syscall"
	"testing"
)

func TestPausedProcessRunsNoThread(t *testing.T) {
	busy := exec.Command("sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	if allStopped(busy.Process.Pid) {
		t.Error("a process that runs counts as paused")
	}
	if err := Pause(busy.Process.Pid); err != nil || !allStopped(busy.Process.Pid) {
		t.Errorf("not paused: %v", err)
	}
	if err := syscall.Kill(busy.Process.Pid, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
}
