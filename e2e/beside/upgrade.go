package beside

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/longhorn"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Upgrade replaces Longhorn by another version, as its manifests do: CRDs, then the manager's pods, then the CSI plugin by the driver
// deployer. What answers for instance managers stays, with the engines that run in them, so new instance managers answer as those
// of the version before. Longhorn's own check of the path is off: 1.9 is left out.
func (c *Cluster) Upgrade(ctx context.Context, to string) error {
	version, err := longhorn.Named(to)
	if err != nil {
		return err
	}
	for _, kept := range []*sandbox.Kept{c.Manager.Kept, c.driver, c.attacher} {
		kept.Release()
		if err := kept.Process().Kill(); err != nil {
			return err
		}
	}
	if err := c.Manager.backend.Close(); err != nil {
		return err
	}
	c.Version = version
	if c.binaries, err = c.Ensure(ctx, "longhorn@"+version.Name); err != nil {
		return err
	}
	// Later CRDs have no conversion webhook, whose fields belong to two parties: only a replacement removes both.
	if out, err := c.Kubectl(ctx, "", "replace", "-f", c.program("crds.yaml")); err != nil && !onlyNew(out) {
		return fmt.Errorf("replacing Longhorn's CRDs: %w\n%s", err, out)
	}
	if err := errors.Join(c.writeEngine(ctx), c.applyManifests(ctx), c.waitManagerImage(ctx)); err != nil {
		return err
	}
	for _, start := range []func(context.Context) error{c.startManager, c.DeployDriver, c.startDriver, c.waitUsable} {
		if err := start(ctx); err != nil {
			return fmt.Errorf("upgrading to %s: %w", to, err)
		}
	}
	return nil
}

// onlyNew reports whether kubectl's only problems were CRDs that the version before did not have.
func onlyNew(out string) bool {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "Error") && !strings.HasPrefix(line, "Error from server (NotFound)") {
			return false
		}
	}
	return true
}

// waitManagerImage waits until the manager's pods are of this version.
func (c *Cluster) waitManagerImage(ctx context.Context) error {
	return eventually.Until(ctx, "pods of longhorn-manager "+c.Version.Name, startTimeout, func() error {
		pods, err := c.Pods(ctx, "app", "longhorn-manager")
		if err != nil {
			return err
		}
		for i := range pods {
			if pod := &pods[i]; pod.Spec.Containers[0].Image != c.Version.Image("longhorn-manager") || !sandbox.IsReady(pod) {
				return fmt.Errorf("pod %s has image %s, ready: %t", pod.Name, pod.Spec.Containers[0].Image, sandbox.IsReady(pod))
			}
		}
		if len(pods) == 0 {
			return errors.New("there are none")
		}
		return nil
	})
}
