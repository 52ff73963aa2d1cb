package conntrack

import (
	"encoding/binary"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// connection is an entry with what it takes to delete it and its socket.
type connection struct {
	client, destination, replier netip.AddrPort
	message                      []byte
}

func (c connection) entry() Entry { return Entry{Destination: c.destination, Replier: c.replier} }

// parse reads a message of the kernel; false: the message is not about TCP.
func parse(message []byte) (connection, bool) {
	if len(message) < nl.SizeofNfgenmsg {
		return connection{}, false
	}
	var forward, reverse tuple
	for kind, value := range attributes(message[nl.SizeofNfgenmsg:]) {
		switch kind {
		case nl.CTA_TUPLE_ORIG:
			forward = readTuple(value)
		case nl.CTA_TUPLE_REPLY:
			reverse = readTuple(value)
		}
	}
	c := connection{client: forward.source(), destination: forward.destination(), replier: reverse.source()}
	return c, forward.protocol == unix.IPPROTO_TCP && c.client.IsValid() && c.destination.IsValid() && c.replier.IsValid()
}

// tuple is one direction of an entry.
type tuple struct {
	from, to         netip.Addr
	fromPort, toPort uint16
	protocol         uint8
}

func (t tuple) source() netip.AddrPort      { return netip.AddrPortFrom(t.from, t.fromPort) }
func (t tuple) destination() netip.AddrPort { return netip.AddrPortFrom(t.to, t.toPort) }

func readTuple(data []byte) tuple {
	var t tuple
	for part, fields := range attributes(data) {
		for field, value := range attributes(fields) {
			switch {
			case part == nl.CTA_TUPLE_IP && (field == nl.CTA_IP_V4_SRC || field == nl.CTA_IP_V6_SRC):
				t.from, _ = netip.AddrFromSlice(value)
			case part == nl.CTA_TUPLE_IP && (field == nl.CTA_IP_V4_DST || field == nl.CTA_IP_V6_DST):
				t.to, _ = netip.AddrFromSlice(value)
			case part == nl.CTA_TUPLE_PROTO && field == nl.CTA_PROTO_NUM && len(value) == 1:
				t.protocol = value[0]
			case part == nl.CTA_TUPLE_PROTO && field == nl.CTA_PROTO_SRC_PORT && len(value) == 2:
				t.fromPort = binary.BigEndian.Uint16(value)
			case part == nl.CTA_TUPLE_PROTO && field == nl.CTA_PROTO_DST_PORT && len(value) == 2:
				t.toPort = binary.BigEndian.Uint16(value)
			}
		}
	}
	return t
}

// attributes yields the netlink attributes in data, as far as they are well formed.
func attributes(data []byte) func(func(uint16, []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(data) >= unix.SizeofNlAttr {
			length := int(binary.NativeEndian.Uint16(data))
			if length < unix.SizeofNlAttr || length > len(data) {
				return
			}
			if !yield(binary.NativeEndian.Uint16(data[2:])&nl.NLA_TYPE_MASK, data[unix.SizeofNlAttr:length]) {
				return
			}
			data = data[min((length+unix.NLA_ALIGNTO-1)/unix.NLA_ALIGNTO*unix.NLA_ALIGNTO, len(data)):]
		}
	}
}
