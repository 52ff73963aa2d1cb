package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// interruptGrace is how long `go build` may take to remove its own temporary files.
const interruptGrace = 5 * time.Second

// build makes all of dir. It appears complete or not at all, however many build it
// at the same time.
func build(ctx context.Context, dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	// In the cache, since a rename must stay on one disk.
	temporary, err := os.MkdirTemp(parent, ".building-")
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(temporary)
	built := filepath.Join(temporary, "built")
	if err := os.MkdirAll(built, 0o755); err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	source, err := downloaded(ctx)
	if err != nil {
		return err
	}
	if err := compile(ctx, built, module+"/cmd/manager", "./endpoint"); err != nil {
		return err
	}
	modfile, err := withSidecarOutsideACluster(ctx, source, temporary)
	if err != nil {
		return err
	}
	if err := compile(ctx, built, "-modfile="+modfile, module+"/sidecar"); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(built, "crds"), os.DirFS(filepath.Join(source, "config", "crd", "bases"))); err != nil {
		return fmt.Errorf("copying csi-addons' CRDs: %w", err)
	}
	if err := os.Rename(built, dir); err != nil {
		if _, missing := os.Stat(dir); missing == nil {
			return nil // somebody else was faster
		}
		return fmt.Errorf("putting csi-addons in place: %w", err)
	}
	return nil
}

// compile builds main packages into a folder, each under the last part of its path.
func compile(ctx context.Context, into string, what ...string) error {
	_, err := run(ctx, append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", into + string(filepath.Separator)}, what...)...)
	return err
}

// downloaded is the folder of csi-addons' sources, as its pin says.
func downloaded(ctx context.Context) (string, error) {
	out, err := run(ctx, "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return "", fmt.Errorf("finding csi-addons' sources: %w", err)
	}
	return found.Dir, nil
}

// run has go do something, and returns what it prints on its standard output.
func run(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	// A workspace around this module would change the versions it is pinned to.
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = interruptGrace
	output, err := command.Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if exit, ok := err.(*exec.ExitError); ok {
		return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return output, nil
}
