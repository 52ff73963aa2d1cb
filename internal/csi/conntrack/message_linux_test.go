package conntrack

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// direction is a tuple as the kernel writes it.
func direction(kind int, from, to netip.AddrPort, protocol uint8) []byte {
	source, destination := nl.CTA_IP_V4_SRC, nl.CTA_IP_V4_DST
	if from.Addr().Is6() {
		source, destination = nl.CTA_IP_V6_SRC, nl.CTA_IP_V6_DST
	}
	tuple := nl.NewRtAttr(unix.NLA_F_NESTED|kind, nil)
	ip := tuple.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_IP, nil)
	ip.AddRtAttr(source, from.Addr().AsSlice())
	ip.AddRtAttr(destination, to.Addr().AsSlice())
	proto := tuple.AddRtAttr(unix.NLA_F_NESTED|nl.CTA_TUPLE_PROTO, nil)
	proto.AddRtAttr(nl.CTA_PROTO_NUM, []byte{protocol})
	proto.AddRtAttr(nl.CTA_PROTO_SRC_PORT, nl.BEUint16Attr(from.Port()))
	proto.AddRtAttr(nl.CTA_PROTO_DST_PORT, nl.BEUint16Attr(to.Port()))
	return tuple.Serialize()
}

func TestMessagesOfTheKernelAreRead(t *testing.T) {
	client, client6 := netip.MustParseAddrPort("10.1.0.7:800"), netip.MustParseAddrPort("[fd00::7]:801")
	address6, server6 := netip.MustParseAddrPort("[fd00:96::1]:2049"), netip.MustParseAddrPort("[fd00::1]:12049")
	for _, c := range []struct {
		client, address, server netip.AddrPort
		protocol                uint8
		ok                      bool
	}{
		{client, address, first, unix.IPPROTO_TCP, true},
		{client6, address6, server6, unix.IPPROTO_TCP, true},
		{client, address, first, unix.IPPROTO_UDP, false},
	} {
		message := append([]byte{unix.AF_INET, 0, 0, 0}, direction(nl.CTA_TUPLE_ORIG, c.client, c.address, c.protocol)...)
		message = append(message, direction(nl.CTA_TUPLE_REPLY, c.server, c.client, c.protocol)...)
		got, ok := parse(message)
		must.Equal(t, ok, c.ok, "%v", c)
		must.Equal(t, []netip.AddrPort{got.client, got.destination, got.replier}, []netip.AddrPort{c.client, c.address, c.server})
		for n := range message {
			_, ok := parse(message[:n])
			must.True(t, !ok || n == len(message), "%d of %d bytes are enough", n, len(message))
		}
	}
}
