package ceph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Blocked is an entry of Ceph's blocklist: a range of addresses, or one client. Ceph itself blocks single
// clients, for a day or an hour: those are no fences.
type Blocked struct {
	Range  netip.Prefix
	Client string // of a single client: its address with port and nonce, as Ceph writes it
	Until  time.Time
}

// Covers reports whether the entry blocks all clients at an address.
func (b Blocked) Covers(ip netip.Addr) bool { return b.Client == "" && b.Range.Contains(ip) }

// Blocklist is what a fence comes down to at the storage. A CSI-Addons endpoint
// of tests can have a real one behind it.
type Blocklist interface {
	Block(ctx context.Context, clients netip.Prefix, how time.Duration) error
	Unblock(ctx context.Context, clients netip.Prefix) error
	Blocked(ctx context.Context) ([]Blocked, error)
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
func (c *Cluster) Blocked(ctx context.Context) ([]Blocked, error) {
	out, err := c.Ceph(ctx, "osd", "blocklist", "ls", "--format", "json")
	if err != nil {
		return nil, err
	}
	return parseBlocklist(out)
}

// parseBlocklist reads a list of addresses and, right after it, one of ranges.
func parseBlocklist(output []byte) ([]Blocked, error) {
	var all []Blocked
	for lists := json.NewDecoder(bytes.NewReader(output)); ; {
		var entries []struct{ Addr, Range, Until string }
		if err := lists.Decode(&entries); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("blocklist: %w", err)
		}
		for _, e := range entries {
			host, nonce, _ := strings.Cut(strings.TrimPrefix(e.Addr+e.Range, "v1:"), "/")
			at, err := netip.ParseAddrPort(host)
			number, err2 := strconv.Atoi(nonce)
			until, err3 := time.Parse("2006-01-02T15:04:05.999999-0700", e.Until)
			if err := errors.Join(err, err2, err3); err != nil {
				return nil, fmt.Errorf("blocklist: %w", err)
			}
			b := Blocked{Range: netip.PrefixFrom(at.Addr(), at.Addr().BitLen()), Until: until}
			if e.Range != "" { // 10.0.0.0:0/24: the nonce is the bits
				b.Range = netip.PrefixFrom(at.Addr(), number)
			} else if at.Port() != 0 || number != 0 {
				b.Client = e.Addr
			}
			all = append(all, b)
		}
	}
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
