//go:build linux

package nodes

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fairlead-io/fairlead/webhook/registration"
)

// InstallFairlead installs an overlay of the manifests as docs/install.md says, and waits until it works.
// Patches are added to it, one list item of kustomize's each.
func (c *Cluster) InstallFairlead(ctx context.Context, overlay string, patches ...string) error {
	if err := c.ImportArchive(ctx, c.Image); err != nil {
		return err
	}
	if err := c.ApplyFairlead(ctx, overlay, patches...); err != nil {
		return err
	}
	return c.WaitFairlead(ctx)
}

// ApplyFairlead applies an overlay with patches.
func (c *Cluster) ApplyFairlead(ctx context.Context, overlay string, patches ...string) error {
	dir := filepath.Join(c.Dir, "overlay")
	base, err := filepath.Rel(dir, filepath.Join(c.Root, "manifests", "overlays", overlay))
	if err != nil {
		return err
	}
	text := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\npatches:\n%s", base, strings.Join(patches, ""))
	if err := writeFile(filepath.Join(dir, "kustomization.yaml"), text); err != nil {
		return err
	}
	if out, err := c.Kubectl(ctx, "", "apply", "--server-side", "-k", dir); err != nil {
		return fmt.Errorf("installing Fairlead: %w\n%s", err, out)
	}
	return nil
}

// WaitFairlead waits until all of Fairlead's pods are Ready and the API server trusts its webhooks.
func (c *Cluster) WaitFairlead(ctx context.Context) error {
	for _, name := range []string{"fairlead-webhook", "fairlead-controller"} {
		if out, err := c.Kubectl(ctx, "", "-n", registration.Namespace, "rollout", "status", "deployment/"+name, "--timeout=3m"); err != nil {
			return fmt.Errorf("waiting for Fairlead: %w\n%s", err, out)
		}
	}
	return c.WaitWorking(ctx)
}
