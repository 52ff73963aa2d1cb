package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// build makes all of dir. The folder appears complete or not at all, however many
// processes build it at the same time.
func build(ctx context.Context, dir, version string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	// In the cache, because a rename must stay on one disk.
	temporary, err := os.MkdirTemp(parent, ".building-")
	if err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(temporary)
	built := filepath.Join(temporary, "built")
	if err := os.MkdirAll(built, 0o755); err != nil {
		return fmt.Errorf("making a folder to build in: %w", err)
	}
	// The manager asks its own version, which Longhorn's build sets in this way.
	ldflags := "-s -w -X " + module + "/meta.Version=" + version
	if err := compile(ctx, ".", built, ldflags, module, "./instances"); err != nil {
		return err
	}
	if err := compile(ctx, attacherFolder, built, "-s -w", attacher); err != nil {
		return err
	}
	if err := copyCRDs(ctx, filepath.Join(built, "crds.yaml")); err != nil {
		return err
	}
	if err := os.Rename(built, dir); err != nil {
		if _, missing := os.Stat(dir); missing == nil {
			return nil // another process was faster
		}
		return fmt.Errorf("putting longhorn-manager in place: %w", err)
	}
	return nil
}

// copyCRDs takes the CRDs from the module that the manager is built from.
func copyCRDs(ctx context.Context, to string) error {
	out, err := run(ctx, "mod", "download", "-json", module)
	if err != nil {
		return err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return fmt.Errorf("finding longhorn-manager's sources: %w", err)
	}
	crds, err := os.ReadFile(filepath.Join(found.Dir, "k8s", "crds.yaml"))
	if err != nil {
		return fmt.Errorf("reading Longhorn's CRDs: %w", err)
	}
	if err := os.WriteFile(to, crds, 0o644); err != nil {
		return fmt.Errorf("copying Longhorn's CRDs: %w", err)
	}
	return nil
}
