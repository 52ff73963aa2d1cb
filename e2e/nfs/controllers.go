package nfs

import (
	"context"
	"fmt"
	"slices"
	"syscall"

	"github.com/fairlead-io/fairlead/e2e/machine"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Controllers that run: processes of the Deployment fairlead-csi-controller. One that ends
// by itself is started again, as a Deployment does: on a busy machine a leader may
// lose its lease.
func (c *Cluster) Controllers() (running []*sandbox.Replica) {
	for _, k := range c.controllers {
		running = append(running, k.Process())
	}
	return running
}

// StartController starts one more controller, and waits until it runs.
func (c *Cluster) StartController(ctx context.Context) error {
	k, err := c.Keep(ctx, func() (*sandbox.Replica, error) {
		return c.StartReplica(context.WithoutCancel(ctx), sandbox.CSIControllerDeployment, fmt.Sprintf("controller-%d", c.started.Add(1)-1))
	})
	if err != nil {
		return err
	}
	c.controllers = append(c.controllers, k)
	return k.Process().WaitReady(ctx)
}

// forget a controller, so that it is not started again.
func (c *Cluster) forget(r *sandbox.Replica) {
	c.controllers = slices.DeleteFunc(c.controllers, func(k *sandbox.Kept) bool {
		found := k.Process() == r
		if found {
			k.Release()
		}
		return found
	})
}

// KillController ends one at once. It is not started again.
func (c *Cluster) KillController(r *sandbox.Replica) error {
	c.forget(r)
	return r.Kill()
}

// StopController ends one as a kubelet does. It is not started again.
func (c *Cluster) StopController(r *sandbox.Replica) error {
	c.forget(r)
	return r.Stop()
}

// RestartController stops all controllers, as a change of their configuration does, and
// starts one.
func (c *Cluster) RestartController(ctx context.Context) error {
	for _, r := range c.Controllers() {
		if err := c.StopController(r); err != nil {
			return err
		}
	}
	return c.StartController(ctx)
}

// Paused runs something while no controller does anything.
func (c *Cluster) Paused(do func() error) error {
	for _, r := range c.Controllers() {
		if err := machine.Pause(r.Pid()); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		defer func() { _ = syscall.Kill(r.Pid(), syscall.SIGCONT) }()
	}
	return do()
}
