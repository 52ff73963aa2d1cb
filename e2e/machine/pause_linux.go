package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Pause stops a process, and returns when none of its threads runs any more: kill(2) returns before that.
// SIGCONT ends the pause.
func Pause(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pausing process %d: %w", pid, err)
	}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if allStopped(pid) {
			return nil
		}
	}
	return fmt.Errorf("process %d has not stopped within ten seconds", pid)
}

func allStopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range threads {
		stat, gone := os.ReadFile(file)
		_, fields, _ := strings.Cut(string(stat), ") ") // after the name: the state, as proc_pid_stat(5) has it
		if !errors.Is(gone, os.ErrNotExist) && !strings.HasPrefix(fields, "T") {
			return false
		}
	}
	return err == nil && len(threads) > 0
}
