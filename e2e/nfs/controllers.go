package nfs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/fairlead-io/fairlead/e2e/machine"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// controllers are the processes of the Deployment fairlead-csi-controller. One that ends
// by itself is started again, as a Deployment does: on a busy machine a leader may
// lose its lease.
type controllers struct {
	mu      sync.Mutex
	running []*sandbox.Replica
	started int
	closed  bool
}

// Controllers that run.
func (c *Cluster) Controllers() []*sandbox.Replica {
	c.controllers.mu.Lock()
	defer c.controllers.mu.Unlock()
	return slices.Clone(c.controllers.running)
}

// StartController starts one more controller, and waits until it runs.
func (c *Cluster) StartController(ctx context.Context) error {
	r, err := c.startController(ctx)
	if err != nil {
		return err
	}
	return r.WaitReady(ctx)
}

func (c *Cluster) startController(ctx context.Context) (*sandbox.Replica, error) {
	c.controllers.mu.Lock()
	defer c.controllers.mu.Unlock()
	r, err := c.StartReplica(ctx, sandbox.CSIControllerDeployment, fmt.Sprintf("controller-%d", c.controllers.started))
	if err != nil {
		return nil, err
	}
	c.controllers.started++
	c.controllers.running = append(c.controllers.running, r)
	go func() {
		<-r.Ended()
		if c.forget(r) {
			fmt.Fprintln(c.Out, r.Name, "has ended by itself, and is started again; see", r.Log)
			if _, err := c.startController(context.WithoutCancel(ctx)); err != nil {
				fmt.Fprintln(c.Out, err)
			}
		}
	}()
	return r, nil
}

// forget a controller; false: it was forgotten before.
func (c *Cluster) forget(r *sandbox.Replica) bool {
	c.controllers.mu.Lock()
	defer c.controllers.mu.Unlock()
	i := slices.Index(c.controllers.running, r)
	if i < 0 || c.controllers.closed {
		return false
	}
	c.controllers.running = slices.Delete(c.controllers.running, i, i+1)
	return true
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

// Stop ends everything that was started.
func (c *Cluster) Stop() error {
	c.controllers.mu.Lock()
	c.controllers.closed = true
	c.controllers.mu.Unlock()
	return c.Sandbox.Stop()
}
