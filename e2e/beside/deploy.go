package beside

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// DeployDriver runs Longhorn's driver deployer, as its Deployment does at each
// installation and upgrade, and waits for the CSI plugin. A plugin that is there is
// replaced: it is made to say that it is of another version.
func (c *Cluster) DeployDriver(ctx context.Context) error {
	before, err := c.Plugin(ctx)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	var replaced types.UID
	if err == nil {
		replaced = before.UID
		if out, err := c.Kubectl(ctx, "", "-n", Namespace, "annotate", "--overwrite", "daemonset", before.Name, "driver.longhorn.io/version=v1.0.0"); err != nil {
			return fmt.Errorf("having the CSI plugin say that it is old: %w\n%s", err, out)
		}
	}
	process, err := c.StartProcess("longhorn-driver-deployer", c.Log("driver-deployer"), c.program("longhorn-manager"), []string{
		"-d", "deploy-driver", "--manager-image", c.Version.Image("longhorn-manager"), "--kubelet-root-dir", "/var/lib/kubelet",
		"--manager-url", "http://longhorn-backend:" + restPort + "/v1", "--kube-config", c.kubeconfig,
	}, append(c.podEnvironment(c.Manager.pod), c.Version.SidecarVariables()...))
	if err != nil {
		return err
	}
	defer process.Kill()
	err = eventually.Until(ctx, "another CSI plugin", startTimeout, func() error {
		ds, err := c.Plugin(ctx)
		if err == nil && ds.UID == replaced {
			err = errors.New("it is the one of before")
		}
		return err
	})
	return errors.Join(err, c.WaitClients(ctx))
}

// waitUsable waits until Longhorn could attach a volume on each node that has a manager.
func (c *Cluster) waitUsable(ctx context.Context) error {
	nodes := "Node=TrueTrue"
	if c.second {
		nodes += " Node=True"
	}
	const template = `jsonpath={range .items[*]}{.kind}={.status.currentState}{.status.state}` +
		`{.status.conditions[?(@.type=="Ready")].status}{.status.diskStatus.*.conditions[?(@.type=="Schedulable")].status} {end}`
	return eventually.Until(ctx, "Longhorn to be usable", startTimeout, func() error {
		out, err := c.Kubectl(ctx, "", "-n", Namespace, "get", "nodes.longhorn.io,instancemanagers.longhorn.io,engineimages.longhorn.io", "-o", template)
		if err != nil {
			return err
		}
		for _, want := range []string{nodes, "InstanceManager=running", "EngineImage=deployed"} {
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
