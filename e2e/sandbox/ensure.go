package sandbox

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Ensure returns the folder of what a module of e2e provides, built if it isn't in the cache: by the control plane's
// program, which keeps the requirements of that module out of the sandbox's own.
func (s *Sandbox) Ensure(ctx context.Context, module string) (string, error) {
	binary, err := buildControlPlane(ctx, s.Root, s.Options)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, binary, "build", module)
	cmd.Dir = filepath.Join(s.Root, "e2e", "controlplane")
	cmd.Stderr = s.Out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it removes what it has begun
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building e2e/%s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
