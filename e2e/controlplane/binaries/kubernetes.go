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

// buildOtherKubernetes builds a program in a module in which a version of Kubernetes builds with its own requirements.
// This module's go.mod can't do that: cert-manager requires libraries of the pinned version.
func buildOtherKubernetes(ctx context.Context, b building, name string) error {
	original, err := manifests.DownloadedGoMod(ctx, controlplane.KubernetesModule, b.version)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(original)
	if err != nil {
		return fmt.Errorf("reading the go.mod of Kubernetes %s: %w", b.version, err)
	}
	b.source = filepath.Join(b.temporary, "kubernetes")
	if err := os.MkdirAll(b.source, 0o755); err != nil {
		return fmt.Errorf("making the module of Kubernetes %s: %w", b.version, err)
	}
	if err := os.WriteFile(filepath.Join(b.source, "go.mod"), asRequirement(content, b.version), 0o644); err != nil {
		return fmt.Errorf("writing the module of Kubernetes %s: %w", b.version, err)
	}
	// The module has no go.sum yet.
	return b.compile(ctx, ".", "bin", kubernetesVersion(b.version), "-mod=mod", controlplane.KubernetesModule+"/cmd/"+name)
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
