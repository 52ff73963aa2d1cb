//go:build linux

package nodes

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed dns.yaml
var dnsManifest string

// startDNS runs CoreDNS as kubeadm does, and waits until its Service has a pod.
func (c *Cluster) startDNS(ctx context.Context) error {
	if err := c.SeedCoreDNS(ctx); err != nil {
		return err
	}
	if out, err := c.Kubectl(ctx, dnsManifest, "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("installing CoreDNS: %w\n%s", err, out)
	}
	if out, err := c.Kubectl(ctx, "", "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=2m"); err != nil {
		return fmt.Errorf("waiting for CoreDNS: %w\n%s", err, out)
	}
	return nil
}
