package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// lookupTimeout is long for a server on the loopback. It is also there for one
// that is about to start and leaves a question unanswered.
const lookupTimeout = 2 * time.Second

// Lookup returns the addresses of exactly that name, IPv4 first; none if there is
// no such name, or none of an address.
func (d *DNS) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	// A new one each time: it would give one answer to all who ask at a time, and
	// with it, to some, an answer from before they asked.
	resolver := &net.Resolver{
		PreferGo:     true,
		StrictErrors: true, // or half an answer would look like all of it
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, d.Address)
		},
	}
	// The dot at the end keeps the search path of this machine out.
	addresses, err := resolver.LookupNetIP(ctx, "ip", strings.TrimSuffix(name, ".")+".")
	if problem := (*net.DNSError)(nil); errors.As(err, &problem) {
		if problem.IsNotFound {
			return nil, nil
		}
		problem.Server = d.Address // not the one of this machine, which the resolver believes to have asked
	}
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", name, err)
	}
	for i, a := range addresses {
		addresses[i] = a.Unmap()
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return addresses, nil
}
