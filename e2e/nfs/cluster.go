package nfs

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Cluster is a sandbox for NFS services.
type Cluster struct {
	*sandbox.Sandbox
	// Share is the folder that all NFS servers serve.
	Share string

	serverBinary string
	// running servers that tests share.
	running map[netip.Addr]*Server

	controllers []*sandbox.Kept
	started     atomic.Int32 // controllers
}

// Options of a cluster.
type Options struct {
	Dir   string
	Nodes int
	Out   io.Writer
}

// Start starts a control plane with that many simulated nodes, without a stand-in
// for the attacher.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	s, err := sandbox.Start(ctx, sandbox.Options{
		Dir: o.Dir, Nodes: o.Nodes, Fairlead: os.Getenv("FAIRLEAD_BINARY"), FastNodeLoss: true, NoAttacher: true, Out: o.Out,
	})
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Sandbox: s, running: map[netip.Addr]*Server{}, Share: filepath.Join(s.Dir, "share"),
		serverBinary: filepath.Join(s.Root, "bin", "nfsserver"), // built by make
	}
	if err := c.install(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return c, nil
}

// install installs Fairlead as the overlay has it, and starts its controller and its webhook.
func (c *Cluster) install(ctx context.Context) error {
	if err := c.Install(ctx, sandbox.NFS); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "", "-n", Namespace, "create", "rolebinding", frontend.PublisherRole,
		"--clusterrole="+frontend.PublisherRole, "--serviceaccount=fairlead-system:fairlead-csi-controller"); err != nil {
		return err
	}
	if err := c.Configure(ctx, "read"); err != nil {
		return err
	}
	if err := c.RunFairlead(ctx, 1, 0); err != nil {
		return err
	}
	return c.StartController(ctx)
}
