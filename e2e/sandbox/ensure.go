package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ensure returns where what a module of e2e provides is, built if it isn't in the
// cache. That is done in its own module, whose requirements stay out of this one.
func (s *Sandbox) ensure(ctx context.Context, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "run", "-trimpath", "./ensure")
	cmd.Dir = filepath.Join(s.Root, "e2e", module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	cmd.Stderr = s.Out
	// A group of its own: go would not pass a signal on to what it runs.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building e2e/%s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
