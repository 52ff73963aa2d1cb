package beside

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/e2e/longhorn"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Namespace of Longhorn.
const Namespace = "longhorn-system"

const serviceAccount = "longhorn-service-account"

// Cluster is a sandbox with Longhorn's own manager in it.
type Cluster struct {
	*sandbox.Sandbox
	Manager *Manager
	// Version of Longhorn.
	Version longhorn.Version

	driver, attacher *sandbox.Kept

	second     bool // the second manager was started
	binaries   string
	kubeconfig string
	logs       string
}

//go:embed longhorn.yaml
var manifests string

// Start starts a control plane with Longhorn, and waits until volumes can be attached.
// Fairlead is not in it yet: see sandbox.Install and sandbox.RunFairlead.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	version, err := longhorn.Named(o.Version)
	if err != nil {
		return nil, err
	}
	s, err := sandbox.Start(ctx, sandbox.Options{Dir: o.Dir, Nodes: 3, Fairlead: o.Fairlead, Duties: o.Duties, AuditWrites: true, NoAttacher: true, Out: o.Out})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Sandbox: s, Version: version, logs: filepath.Join(s.Dir, "longhorn")}
	if err := c.startLonghorn(ctx); err != nil {
		fmt.Fprintln(c.Out, c.Describe(ctx))
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Stop ends everything.
func (c *Cluster) Stop() error {
	if c.Manager != nil {
		_ = c.Manager.backend.Close()
	}
	return c.Sandbox.Stop()
}

func (c *Cluster) startLonghorn(ctx context.Context) error {
	var err error
	if c.binaries, err = c.Ensure(ctx, "longhorn@"+c.Version.Name); err != nil {
		return err
	}
	if err := os.MkdirAll(c.logs, 0o755); err != nil {
		return fmt.Errorf("making a folder for logs: %w", err)
	}
	if err := c.install(ctx); err != nil {
		return err
	}
	if c.kubeconfig, err = c.ServiceAccountKubeconfig(ctx, Namespace, serviceAccount, c.logs); err != nil {
		return err
	}
	if err := errors.Join(c.writeAccount(), c.writeEngine(ctx)); err != nil {
		return err
	}
	instances := []string{"--kubeconfig=" + c.State.Kubeconfig, "--namespace=" + Namespace}
	if _, err := c.StartProcess("instances", c.Log("instances"), c.program("instances"), instances, nil); err != nil {
		return err
	}
	if err := c.startManager(ctx); err != nil {
		return err
	}
	if err := c.DeployDriver(ctx); err != nil {
		return err
	}
	if err := c.startDriver(ctx); err != nil {
		return err
	}
	if err := c.waitUsable(ctx); err != nil {
		return err
	}
	return c.applySettings(ctx)
}

// applySettings restarts the manager: settings that it looked at before the CSI plugin was
// there stay unapplied until it looks again, an hour later.
func (c *Cluster) applySettings(ctx context.Context) error {
	if err := c.Manager.Restart(ctx); err != nil {
		return err
	}
	for _, name := range []string{StorageNetwork, StorageNetworkForRWX} {
		if err := c.WaitApplied(ctx, name, true, startTimeout); err != nil {
			return err
		}
	}
	return nil
}

// install applies the CRDs of this version, with their conversion webhook, and the
// manifests. Only node-1 is schedulable, so that servers and replicas are there: Longhorn
// takes node-3, which has no manager, for lost.
func (c *Cluster) install(ctx context.Context) error {
	if err := errors.Join(c.SeedNetworks(ctx), c.applyManifests(ctx)); err != nil {
		return err
	}
	for _, node := range c.State.Nodes[1:] {
		if out, err := c.Kubectl(ctx, "", "cordon", node); err != nil {
			return fmt.Errorf("cordoning %s: %w\n%s", node, err, out)
		}
	}
	return nil
}

func (c *Cluster) applyManifests(ctx context.Context) error {
	if out, err := c.Kubectl(ctx, "", "apply", "--server-side", "--force-conflicts", "-f", c.program("crds.yaml")); err != nil {
		return fmt.Errorf("installing Longhorn's CRDs: %w\n%s", err, out)
	}
	if out, err := c.Kubectl(ctx, strings.ReplaceAll(manifests, "VERSION", c.Version.Name), "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("installing Longhorn: %w\n%s", err, out)
	}
	return nil
}

// Managed are the two nodes that have a manager, once the second one was started: volumes
// can be attached to these.
func (c *Cluster) Managed() []string { return c.State.Nodes[:2] }

// keep starts a program of Longhorn's, and starts it again when it ends.
func (c *Cluster) keep(ctx context.Context, name, program string, args, env []string) (*sandbox.Kept, error) {
	return c.Keep(ctx, func() (*sandbox.Replica, error) { return c.StartProcess(name, c.Log(name), program, args, env) })
}

func (c *Cluster) program(name string) string { return filepath.Join(c.binaries, name) }

// Log is the file of what one of Longhorn's programs prints.
func (c *Cluster) Log(name string) string { return filepath.Join(c.logs, name+".log") }

// startTimeout is what Longhorn needs to start on a busy machine: its disk monitor alone
// takes half a minute.
const startTimeout = 2 * time.Minute
