//go:build linux

package nodes

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed networks.yaml
var networks string

// StorageNetwork is defined in networks.yaml.
const StorageNetwork = "kube-system/storage-net"

// CreateNetworks on the storage links.
func (c *Cluster) CreateNetworks(ctx context.Context) error {
	if out, err := c.Kubectl(ctx, networks, "apply", "--server-side", "-f", "-"); err != nil {
		return fmt.Errorf("creating networks: %w\n%s", err, out)
	}
	return nil
}
