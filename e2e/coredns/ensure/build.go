package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// interruptGrace is how long `go build` may take to remove its own temporary files.
const interruptGrace = 5 * time.Second

// build compiles CoreDNS. It appears at binary complete or not at all, however
// many build it at the same time.
func build(ctx context.Context, binary string) error {
	parent := filepath.Dir(filepath.Dir(binary))
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	// In the cache, since a rename must stay on one disk.
	temporary, err := os.MkdirTemp(parent, ".building-")
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(temporary)
	built := filepath.Join(temporary, "coredns")

	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built, ".")
	// A workspace around this module would change the versions it is pinned to.
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = interruptGrace
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("building CoreDNS: %w\n%s", err, output)
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	if err := os.Rename(built, binary); err != nil {
		return fmt.Errorf("putting CoreDNS in place: %w", err)
	}
	return nil
}
