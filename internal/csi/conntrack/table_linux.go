package conntrack

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Kernel is the connection tracking of the process's network namespace. It needs CAP_NET_ADMIN.
type Kernel struct{}

// Delete deletes entries of both families.
func (Kernel) Delete(choose func(Entry) bool) (int, error) {
	var errs []error
	deleted := 0
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		n, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, filter(choose))
		deleted += int(n)
		if err != nil {
			errs = append(errs, fmt.Errorf("deleting entries of connection tracking: %w", err))
		}
	}
	return deleted, errors.Join(errs...)
}

// filter is a netlink.CustomConntrackFilter.
type filter func(Entry) bool

// MatchConntrackFlow says whether the entry is to be deleted.
func (f filter) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_TCP {
		return false
	}
	return f(Entry{Destination: addrPort(flow.Forward.DstIP, flow.Forward.DstPort), Replier: addrPort(flow.Reverse.SrcIP, flow.Reverse.SrcPort)})
}

func addrPort(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}
