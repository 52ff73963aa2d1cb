//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Cluster of real nodes.
type Cluster struct {
	*sandbox.Sandbox
	Nodes []*Node

	// Image is the archive of Fairlead's image.
	Image string

	programs programs
	// cgroup of all nodes.
	cgroup string
	leave  func() error
}

// Options of a cluster.
type Options struct {
	// Dir holds everything that is written. It must be on a disk, not in memory.
	Dir string
	// Nodes is how many there are.
	Nodes int
	// Image is the archive of Fairlead's image.
	Image string
	Out   io.Writer
}

// programs of the nodes.
type programs struct {
	NodeInit, NFSMount, Kubelet, KubeProxy string
	// CNI is the folder of the plugins.
	CNI string
}

// Variables of the environment that name programs which make builds.
const (
	NodeInitVariable = "FAIRLEAD_NODEINIT"
	NFSMountVariable = "FAIRLEAD_NFSMOUNT"
)

// Start starts a control plane and nodes, and waits until the nodes are Ready. It is called in a machine of its own.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{Image: o.Image, programs: programs{NodeInit: os.Getenv(NodeInitVariable), NFSMount: os.Getenv(NFSMountVariable)}}
	if c.programs.NodeInit == "" || c.programs.NFSMount == "" || o.Image == "" {
		return nil, fmt.Errorf("%s and %s must name the programs nodeinit and nfsmount, and the options an image", NodeInitVariable, NFSMountVariable)
	}
	leave, err := enter(ctx)
	if err != nil {
		return nil, fmt.Errorf("preparing the machine: %w", err)
	}
	c.leave, c.cgroup = leave, filepath.Join(allCgroups, string(uuid.NewUUID())[:8])
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// startTimeout is for a busy machine.
const startTimeout = 2 * time.Minute

func (c *Cluster) start(ctx context.Context, o Options) error {
	if err := makeBridges(ctx); err != nil {
		return err
	}
	var names []string
	for i := range o.Nodes {
		names = append(names, fmt.Sprintf("node-%d", i+1))
	}
	s, err := sandbox.Start(ctx, sandbox.Options{
		Dir: o.Dir, Kubelets: names, Address: MachineAddress, FastNodeLoss: true, AuditWrites: true, NoAttacher: true, Out: o.Out,
	})
	if err != nil {
		return err
	}
	c.Sandbox = s
	for i, name := range names {
		c.Nodes = append(c.Nodes, &Node{Name: name, Dir: filepath.Join(s.Dir, name), Address: fmt.Sprintf("10.99.0.%d", 11+i), number: i + 1, cluster: c})
	}
	folder, err := c.Ensure(ctx, "nodeprograms")
	if err != nil {
		return err
	}
	c.programs.Kubelet, c.programs.KubeProxy, c.programs.CNI = filepath.Join(folder, "kubelet"), filepath.Join(folder, "kube-proxy"), filepath.Join(folder, "cni")
	if err := c.prepareMultus(ctx); err != nil {
		return err
	}
	if err := c.prepareImages(ctx); err != nil {
		return err
	}
	if err := inParallel(c.Nodes, func(n *Node) error { return n.Boot(ctx) }); err != nil {
		return err
	}
	for _, n := range c.Nodes {
		if err := n.WaitReady(ctx, startTimeout); err != nil {
			return err
		}
	}
	return c.startDNS(ctx)
}

// WaitReady waits until Kubernetes calls the node Ready.
func (n *Node) WaitReady(ctx context.Context, timeout time.Duration) error {
	return eventually.Until(ctx, n.Name+" to be Ready", timeout, func() error {
		var node corev1.Node
		if err := n.cluster.Client.Get(ctx, client.ObjectKey{Name: n.Name}, &node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is not; see %s", n.Log("kubelet"))
	})
}

// Stop ends everything.
func (c *Cluster) Stop() error {
	problems := []error{inParallel(c.Nodes, (*Node).PowerOff)}
	if c.Sandbox != nil {
		problems = append(problems, c.Sandbox.Stop())
	}
	problems = append(problems, removeBridges(context.Background()), removeCgroups(c.cgroup), c.leave())
	return errors.Join(problems...)
}

// SharedFolder is on all nodes, like a folder of a cluster file system.
func (c *Cluster) SharedFolder() string { return filepath.Join(c.Dir, "shared") }

func inParallel(nodes []*Node, do func(*Node) error) error {
	problems := make([]error, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() { problems[i] = do(n) })
	}
	group.Wait()
	return errors.Join(problems...)
}

func (c *Cluster) controlPlaneFile(path ...string) string {
	return filepath.Join(append([]string{c.Dir, "controlplane", "pki"}, path...)...)
}

func (c *Cluster) authority() string             { return c.controlPlaneFile("ca.crt") }
func (c *Cluster) kubeconfig(name string) string { return c.controlPlaneFile(name + ".kubeconfig") }
