package binaries

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// LonghornSourceVariable names the environment variable with a checkout of longhorn-manager. Such a checkout has a vendor folder:
// it builds where module proxies refuse a version.
const LonghornSourceVariable = "LONGHORN_SOURCE"

// buildLonghornManager builds longhorn-manager and the program instances, in one module: instances speaks by the types of the
// manager's version.
func buildLonghornManager(ctx context.Context, b building) error {
	// The manager asks its own version, which Longhorn's build sets in this way.
	ldflags := "-X " + longhornModule + "/meta.Version=" + b.version
	if b.checkout == "" {
		return b.compile(ctx, ".", "", ldflags, longhornModule, ".")
	}
	const instances = "instances"
	sources, err := filepath.Glob(filepath.Join(b.source, "*.go"))
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for _, file := range sources {
		if !strings.HasSuffix(file, "_test.go") {
			replace[filepath.Join(b.checkout, "fairlead", instances, filepath.Base(file))] = file
		}
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := filepath.Join(b.temporary, "overlay.json")
	if err := os.WriteFile(overlay, content, 0o644); err != nil {
		return fmt.Errorf("writing what is added to %s: %w", b.checkout, err)
	}
	b.source = b.checkout
	return b.compile(ctx, ".", "", ldflags, "-mod=vendor", "-overlay="+overlay, ".", "./fairlead/"+instances)
}

// copyLonghornCRDs copies the CRDs without the lines that are only for Helm.
func copyLonghornCRDs(ctx context.Context, b building) error {
	const name = "crds.yaml"
	if err := b.copyFromModule(ctx, longhornModule, "k8s/"+name, name); err != nil {
		return err
	}
	path := filepath.Join(b.into, name)
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var kept [][]byte
	for line := range bytes.Lines(content) {
		if !bytes.Contains(line, []byte("{{")) {
			kept = append(kept, line)
		}
	}
	return os.WriteFile(path, bytes.Join(kept, nil), 0o644)
}
