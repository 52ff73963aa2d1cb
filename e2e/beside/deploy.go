package beside

import (
	"context"
	"fmt"
	"strings"
)

// DeployDriver runs Longhorn's driver deployer, as its Deployment does at each
// installation, upgrade and restart of the deployer's pod, and waits for the CSI plugin.
func (c *Cluster) DeployDriver(ctx context.Context) error {
	process, err := c.StartProcess("longhorn-driver-deployer", c.Log("driver-deployer"), c.program("longhorn-manager"), []string{
		"-d", "deploy-driver", "--manager-image", managerImage, "--kubelet-root-dir", "/var/lib/kubelet",
		"--manager-url", "http://longhorn-backend:" + restPort + "/v1", "--kube-config", c.kubeconfig,
	}, c.podEnvironment(c.Manager.pod))
	if err != nil {
		return err
	}
	defer process.Kill()
	return c.WaitClients(ctx)
}

// waitUsable waits until Longhorn could attach a volume on both nodes that have a manager.
func (c *Cluster) waitUsable(ctx context.Context) error {
	const template = `jsonpath={range .items[*]}{.kind}={.status.currentState}{.status.state}` +
		`{.status.conditions[?(@.type=="Ready")].status}{.status.diskStatus.*.conditions[?(@.type=="Schedulable")].status} {end}`
	return c.Eventually(ctx, "Longhorn to be usable", startTimeout, func() error {
		out, err := c.Kubectl(ctx, "", "-n", Namespace, "get", "nodes.longhorn.io,instancemanagers.longhorn.io,engineimages.longhorn.io", "-o", template)
		if err != nil {
			return err
		}
		for _, want := range []string{"Node=TrueTrue Node=True", "InstanceManager=running", "EngineImage=deployed"} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("%s is missing in: %s", want, out)
			}
		}
		return nil
	})
}

// Describe is what Longhorn has, for messages.
func (c *Cluster) Describe(ctx context.Context) string {
	out, err := c.Kubectl(ctx, "", "-n", Namespace, "get", "nodes.longhorn.io,volumes.longhorn.io,instancemanagers.longhorn.io,sharemanagers.longhorn.io,pods,services,endpoints", "-o", "wide")
	if err != nil {
		return fmt.Sprint(err)
	}
	return out
}
