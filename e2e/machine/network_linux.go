package machine

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// makeNetwork brings up the loopback, with all addresses of the machine.
func makeNetwork(spec Spec) error {
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bringing up the loopback: %w", err)
	}
	for _, prefix := range spec.Addresses {
		if err := addRoute(localRoute(prefix)); err != nil {
			return fmt.Errorf("taking the addresses %s: %w", prefix, err)
		}
	}
	return nil
}

const loopbackName = "lo"

// loopbackIndex is the same in every network namespace.
const loopbackIndex = 1

func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq(loopbackName)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

func addRoute(message []byte) error {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	if err := unix.Sendto(socket, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, unix.Getpagesize())
	n, _, err := unix.Recvfrom(socket, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("the kernel's answer of %d bytes is no acknowledgement", n)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// localRoute is what `ip route add local PREFIX dev lo` sends.
func localRoute(prefix netip.Prefix) []byte {
	family, address := unix.AF_INET, prefix.Masked().Addr().AsSlice()
	if prefix.Addr().Is6() {
		family = unix.AF_INET6
	}
	route := unix.RtMsg{
		Family: uint8(family), Dst_len: uint8(prefix.Bits()), Protocol: unix.RTPROT_BOOT,
		Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST, Type: unix.RTN_LOCAL,
	}
	body := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&route)), unix.SizeofRtMsg)...)
	body = append(body, attribute(unix.RTA_DST, address)...)
	body = append(body, attribute(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, loopbackIndex))...)
	header := unix.NlMsghdr{
		Len: uint32(unix.NLMSG_HDRLEN + len(body)), Type: unix.RTM_NEWROUTE, Seq: 1,
		Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | unix.NLM_F_CREATE | unix.NLM_F_EXCL,
	}
	return append(append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&header)), unix.SizeofNlMsghdr)...), body...)
}

// attribute of a netlink message. Addresses and numbers need no padding.
func attribute(kind uint16, value []byte) []byte {
	data := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofRtAttr+len(value)))
	return append(binary.NativeEndian.AppendUint16(data, kind), value...)
}
