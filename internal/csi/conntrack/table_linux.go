package conntrack

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Kernel is the connection tracking of the process's network namespace. It needs CAP_NET_ADMIN.
type Kernel struct{}

// Delete deletes chosen entries to some destinations, and closes their sockets on this node.
// The kernel leaves out other ports and protocols (Linux 5.8; older kernels send all entries),
// and no entry is kept that is not chosen: a node may have hundreds of thousands.
func (Kernel) Delete(to []netip.AddrPort, choose func(Entry) bool) (int, error) {
	var errs []error
	deleted := 0
	asked := map[query]bool{}
	for _, address := range to {
		q := query{unix.AF_INET, address.Port()}
		if address.Addr().Is6() {
			q.family = unix.AF_INET6
		}
		if asked[q] {
			continue
		}
		asked[q] = true
		n, err := q.delete(choose)
		deleted += n
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return deleted, fmt.Errorf("deleting entries of connection tracking: %w", err)
	}
	return deleted, nil
}

// query is for the TCP entries of one family to one port.
type query struct {
	family uint8
	port   uint16
}

func (q query) delete(choose func(Entry) bool) (int, error) {
	var chosen []connection
	err := q.dump().ExecuteIter(unix.NETLINK_NETFILTER, 0, func(message []byte) bool {
		if c, ok := parse(message); ok && choose(c.entry()) {
			c.message = bytes.Clone(message)
			chosen = append(chosen, c)
		}
		return true
	})
	errs, deleted := []error{err}, 0
	for _, c := range chosen {
		r := q.request(nl.IPCTNL_MSG_CT_DELETE, unix.NLM_F_ACK)
		r.AddRawData(c.message[nl.SizeofNfgenmsg:])
		if _, err := r.Execute(unix.NETLINK_NETFILTER, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, err)
			continue
		}
		deleted++
		// A socket in a pod's network, or without INET_DIAG_DESTROY in the kernel, stays open. The answer to its
		// next packet ends the connection.
		_ = netlink.SocketDestroy(net.TCPAddrFromAddrPort(c.client), net.TCPAddrFromAddrPort(c.destination))
	}
	return deleted, errors.Join(errs...)
}

func (q query) request(operation, flags int) *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|operation, flags)
	r.AddData(&nl.Nfgenmsg{NfgenFamily: q.family, Version: nl.NFNETLINK_V0})
	return r
}

// Of linux/netfilter/nfnetlink_conntrack.h and, for the flags, net/netfilter/nf_internals.h.
const (
	ctaFilter          = 25
	ctaFilterOrigFlags = 1
	byProtocol         = 1 << 3
	byDestinationPort  = 1 << 5
)

// dump asks for the entries.
func (q query) dump() *nl.NetlinkRequest {
	r := q.request(nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP)
	tuple := nl.NewRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_ORIG, nil)
	protocol := nl.NewRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_PROTO, nil)
	protocol.AddRtAttr(nl.CTA_PROTO_NUM, []byte{unix.IPPROTO_TCP})
	protocol.AddRtAttr(nl.CTA_PROTO_DST_PORT, nl.BEUint16Attr(q.port))
	tuple.AddChild(protocol)
	filter := nl.NewRtAttr(unix.NLA_F_NESTED|ctaFilter, nil)
	filter.AddRtAttr(ctaFilterOrigFlags, nl.Uint32Attr(byProtocol|byDestinationPort))
	r.AddData(tuple)
	r.AddData(filter)
	return r
}
