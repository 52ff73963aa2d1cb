//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/nodes/image"
)

// WorkloadImage is a shell with busybox' programs.
const WorkloadImage = "fairlead.test/workload:1"

const dnsImage = "fairlead.test/coredns:1"

func (c *Cluster) importBaseImages(ctx context.Context) error {
	coredns, err := c.Ensure(ctx, "coredns")
	if err != nil {
		return err
	}
	return c.Import(ctx, "base",
		image.Image{Name: pauseImage, Entrypoint: []string{"/bin/sleep", "infinity"}},
		image.Image{Name: WorkloadImage, Cmd: []string{"/bin/sh"}},
		image.Image{Name: dnsImage, Files: map[string]string{"/coredns": filepath.Join(coredns, "coredns")}, Entrypoint: []string{"/coredns"}},
	)
}

// Import gives all nodes these images.
func (c *Cluster) Import(ctx context.Context, name string, images ...image.Image) error {
	path := filepath.Join(c.Dir, "images", name+".tar")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	archive, err := os.Create(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	if err := errors.Join(image.Write(archive, images...), archive.Close()); err != nil {
		return err
	}
	return c.ImportArchive(ctx, path)
}

// ImportArchive gives all nodes the images of an archive, Docker's or OCI's.
func (c *Cluster) ImportArchive(ctx context.Context, path string) error {
	began := time.Now()
	err := inParallel(c.Nodes, func(n *Node) error {
		return eventually.Until(ctx, "containerd on "+n.Name, startTimeout, func() error {
			_, err := n.Run(ctx, "ctr", "--namespace=k8s.io", "images", "import", "--platform=linux/amd64", path)
			return err
		})
	})
	fmt.Fprintf(c.Out, "imported %s on %d nodes in %s\n", filepath.Base(path), len(c.Nodes), time.Since(began).Round(100*time.Millisecond))
	return err
}
