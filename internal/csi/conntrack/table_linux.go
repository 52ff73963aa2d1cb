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

// Delete deletes entries of both families, and closes their sockets on this node.
func (Kernel) Delete(choose func(Entry) bool) (int, error) {
	var errs []error
	deleted := 0
	f := &filter{choose: choose}
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		n, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, f)
		deleted += int(n)
		if err != nil {
			errs = append(errs, fmt.Errorf("deleting entries of connection tracking: %w", err))
		}
	}
	for _, c := range f.chosen {
		// A socket in a pod's network, or without INET_DIAG_DESTROY in the kernel, stays open. The answer to its
		// next packet ends the connection.
		_ = netlink.SocketDestroy(c.client, c.destination)
	}
	return deleted, errors.Join(errs...)
}

// filter is a netlink.CustomConntrackFilter.
type filter struct {
	choose func(Entry) bool
	chosen []connection
}

type connection struct{ client, destination *net.TCPAddr }

// MatchConntrackFlow reports whether the entry is to be deleted.
func (f *filter) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	to := flow.Forward
	if to.Protocol != unix.IPPROTO_TCP || !f.choose(Entry{Destination: addrPort(to.DstIP, to.DstPort), Replier: addrPort(flow.Reverse.SrcIP, flow.Reverse.SrcPort)}) {
		return false
	}
	f.chosen = append(f.chosen, connection{&net.TCPAddr{IP: to.SrcIP, Port: int(to.SrcPort)}, &net.TCPAddr{IP: to.DstIP, Port: int(to.DstPort)}})
	return true
}

func addrPort(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}
