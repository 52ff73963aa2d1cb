package ceph

import (
	"context"
	"net/netip"
	"strconv"
	"time"

	"github.com/fairlead-io/fairlead/fence/watchers"
)

// Blocklist is what a fence comes down to at the storage. A CSI-Addons endpoint
// of tests can have a real one behind it.
type Blocklist interface {
	Block(ctx context.Context, clients netip.Prefix, how time.Duration) error
	Unblock(ctx context.Context, clients netip.Prefix) error
	Blocked(ctx context.Context) ([]watchers.Blocked, error)
}

var _ Blocklist = (*Cluster)(nil)

// Block blocks all clients of a range, as Ceph's CSI driver does.
func (c *Cluster) Block(ctx context.Context, clients netip.Prefix, how time.Duration) error {
	_, err := c.Ceph(ctx, "osd", "blocklist", "range", "add", clients.String(), strconv.Itoa(int(how.Seconds())))
	return err
}

// Unblock ends that. Ranges are known by their text: it has to be the same.
func (c *Cluster) Unblock(ctx context.Context, clients netip.Prefix) error {
	_, err := c.Ceph(ctx, "osd", "blocklist", "range", "rm", clients.String())
	return err
}

// Blocked is all that is blocked, also what Ceph has blocked itself.
func (c *Cluster) Blocked(ctx context.Context) ([]watchers.Blocked, error) {
	out, err := c.Ceph(ctx, watchers.BlocklistArgs()...)
	if err != nil {
		return nil, err
	}
	return watchers.ParseBlocklist(out)
}

// BlockAddress blocks all clients at one address, without a range: the only way
// before Ceph 16.2.
func (c *Cluster) BlockAddress(ctx context.Context, address netip.Addr) error {
	_, err := c.Ceph(ctx, "osd", "blocklist", "add", address.String())
	return err
}

// UnblockAddress ends that.
func (c *Cluster) UnblockAddress(ctx context.Context, address netip.Addr) error {
	_, err := c.Ceph(ctx, "osd", "blocklist", "rm", address.String())
	return err
}
