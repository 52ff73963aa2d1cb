package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
	"github.com/fairlead-io/fairlead/e2e/controlplane/manifests"
)

// writeKubernetesModule makes a module in folder in which a version of Kubernetes builds with its own requirements.
// This module's go.mod can't do that: cert-manager requires libraries of the pinned version.
func writeKubernetesModule(ctx context.Context, folder, version string) error {
	original, err := manifests.DownloadedGoMod(ctx, controlplane.KubernetesModule, version)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(original)
	if err != nil {
		return fmt.Errorf("reading the go.mod of Kubernetes %s: %w", version, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the module of Kubernetes %s: %w", version, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), asRequirement(content, version), 0o644); err != nil {
		return fmt.Errorf("writing the module of Kubernetes %s: %w", version, err)
	}
	return nil
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module .*$`)
	// In its repository, Kubernetes replaces the modules released with it by folders.
	stagingLine = regexp.MustCompile(`(?m)=> \./staging/src/(\S+)$`)
)

// asRequirement turns Kubernetes' own go.mod into one that requires this version of Kubernetes.
func asRequirement(goMod []byte, version string) []byte {
	goMod = moduleLine.ReplaceAll(goMod, []byte("module fairlead.invalid/kubernetes"))
	goMod = stagingLine.ReplaceAll(goMod, []byte("=> $1 "+controlplane.StagingVersion(version)))
	return append(goMod, fmt.Sprintf("\nrequire %s %s\n", controlplane.KubernetesModule, version)...)
}
