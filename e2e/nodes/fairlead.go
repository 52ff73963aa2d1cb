//go:build linux

package nodes

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fairlead-io/fairlead/webhook/registration"
)

// Installation of Fairlead.
type Installation struct {
	// Overlay and Components of the manifests.
	Overlay    string
	Components []string
	// Patches are items of kustomize's list of patches.
	Patches []string
}

// Configure is a patch for Fairlead's configuration: fields in YAML, a line each.
func Configure(fields ...string) string {
	return fmt.Sprintf(configuration, strings.Join(fields, "\n          "))
}

const configuration = `  - target: {kind: ConfigMap, name: fairlead}
    patch: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: fairlead, namespace: fairlead-system}
      data:
        configuration.yaml: |
          apiVersion: config.fairlead.io/v1alpha1
          kind: Configuration
          clusterDomain: cluster.local
          %s
`

// InstallFairlead installs an overlay of the manifests as docs/install.md says, and waits until the pods of these
// Deployments are Ready.
func (c *Cluster) InstallFairlead(ctx context.Context, i Installation, deployments ...string) error {
	if err := c.ApplyFairlead(ctx, i); err != nil {
		return err
	}
	return c.WaitRolledOut(ctx, registration.Namespace, deployments...)
}

// ApplyFairlead applies the manifests.
func (c *Cluster) ApplyFairlead(ctx context.Context, i Installation) error {
	dir := filepath.Join(c.Dir, "overlay")
	manifests, err := filepath.Rel(dir, filepath.Join(c.Root, "manifests"))
	if err != nil {
		return err
	}
	var components []string
	for _, name := range i.Components {
		components = append(components, filepath.Join(manifests, "components", name))
	}
	text := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\ncomponents: [%s]\npatches:\n%s",
		filepath.Join(manifests, "overlays", i.Overlay), strings.Join(components, ", "), strings.Join(i.Patches, ""))
	if err := writeFile(filepath.Join(dir, "kustomization.yaml"), text); err != nil {
		return err
	}
	if out, err := c.Kubectl(ctx, "", "apply", "--server-side", "-k", dir); err != nil {
		return fmt.Errorf("installing Fairlead: %w\n%s", err, out)
	}
	return nil
}

// WaitRolledOut waits until all pods of Deployments are Ready.
func (c *Cluster) WaitRolledOut(ctx context.Context, namespace string, deployments ...string) error {
	for _, name := range deployments {
		if out, err := c.Kubectl(ctx, "", "-n", namespace, "rollout", "status", "deployment/"+name, "--timeout=3m"); err != nil {
			return fmt.Errorf("waiting for %s: %w\n%s", name, err, out)
		}
	}
	return nil
}
