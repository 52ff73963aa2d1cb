//go:build linux

package nodes

import (
	"context"
	"testing"
)

// sharedVolume writes 20 MB on one node and reads them on another, over the storage links.
func sharedVolume(ctx context.Context, t *testing.T, c *Cluster) {
	networkOn(ctx, t, c)
	must(t, c.CreateClaim(ctx, "shared", "longhorn-hard", "ReadWriteMany"))
	must(t, c.Run(ctx, Workload{Name: "writer", Claim: "shared", Node: "node-1"}))
	must(t, c.Run(ctx, Workload{Name: "reader", Claim: "shared", Node: "node-2"}))
	for _, name := range []string{"writer", "reader"} {
		_, err := c.WaitWorkload(ctx, name)
		must(t, err)
	}
	c.expectOnStorage(t, 0.01, func() {
		written, err := c.Shell(ctx, "writer", "dd if=/dev/urandom of=/data/file bs=1M count=20 conv=fsync 2>/dev/null && sha256sum /data/file")
		must(t, err)
		read, err := c.Shell(ctx, "reader", "sha256sum /data/file")
		must(t, err)
		if read != written {
			t.Errorf("written %q, read %q", written, read)
		}
	})
	must(t, c.Remove(ctx, "writer", "reader"))
}

// expectOnStorage does something that sends 20 MB, and checks that the storage links carry it. The management links may
// carry a share.
func (c *Cluster) expectOnStorage(t *testing.T, share float64, do func()) {
	t.Helper()
	before := c.traffic(t)
	do()
	after := c.traffic(t)
	storage, management := after[Storage]-before[Storage], after[Management]-before[Management]
	t.Logf("%d bytes over the storage links, %d over the management links", storage, management)
	if storage < 20<<20 || float64(management) > share*float64(storage) {
		t.Errorf("the storage links carried %d bytes and the management links %d: want 20 MB or more, and %g of it at most", storage, management, share)
	}
}

// traffic of all nodes.
func (c *Cluster) traffic(t *testing.T) map[Link]int64 {
	t.Helper()
	sum := map[Link]int64{}
	for _, n := range c.Nodes {
		for _, link := range []Link{Management, Storage} {
			bytes, err := n.Bytes(link)
			must(t, err)
			sum[link] += bytes
		}
	}
	return sum
}
