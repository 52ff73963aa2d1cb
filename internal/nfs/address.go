package nfs

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// DefaultPort is the port of NFS (RFC 7530, section 3.1).
const DefaultPort = 2049

// ParseAddress reads the IP address of an NFS server. It refuses what no other
// node can reach and what the Kubernetes API refuses in an EndpointSlice:
// unspecified, loopback, link-local and multicast addresses, and zones.
// An IPv4 address in IPv6 form is returned as IPv4, so that equal addresses compare equal.
func ParseAddress(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, fmt.Errorf("the address is empty: write an IPv4 or IPv6 address")
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address: write an IPv4 or IPv6 address, without blanks; names are not resolved", text)
	}
	if a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%s has a zone, which only one host knows: write the address without it", a)
	}
	a = a.Unmap()
	kind := ""
	switch {
	case a.IsUnspecified():
		kind = "the unspecified address"
	case a.IsLoopback():
		kind = "a loopback address"
	case a.IsLinkLocalUnicast(), a.IsLinkLocalMulticast():
		kind = "a link-local address"
	case a.IsMulticast():
		kind = "a multicast address"
	case !a.IsGlobalUnicast():
		kind = "a broadcast address"
	}
	if kind != "" {
		return netip.Addr{}, fmt.Errorf("%s is %s, which clients on other nodes cannot mount: write the address of the server", a, kind)
	}
	return a, nil
}

// ParseEndpoint reads an address with a port: 10.0.0.1:2049, [fd00::1]:2049. Where
// port is not 0, the port may be missing and is then port: 10.0.0.1, fd00::1, [fd00::1].
func ParseEndpoint(text string, port uint16) (netip.AddrPort, error) {
	host, portText := splitPort(text)
	if portText != "" {
		n, err := strconv.ParseUint(portText, 10, 16)
		if err != nil || n == 0 {
			return netip.AddrPort{}, fmt.Errorf("%q is not a port: write a number from 1 to 65535", portText)
		}
		port = uint16(n)
	} else if port == 0 || strings.HasSuffix(text, ":") && !strings.HasSuffix(text, "::") {
		return netip.AddrPort{}, fmt.Errorf("%q names no port: write 10.0.0.1:2049 or [fd00::1]:2049", text)
	}
	a, err := ParseAddress(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(a, port), nil
}

// splitPort cuts the port off, and the brackets of an IPv6 address.
func splitPort(text string) (host, port string) {
	if rest, ok := strings.CutPrefix(text, "["); ok {
		if inner, after, ok := strings.Cut(rest, "]"); ok && strings.Contains(inner, ":") {
			if after == "" {
				return inner, ""
			}
			if port, ok := strings.CutPrefix(after, ":"); ok {
				return inner, port
			}
		}
		return text, ""
	}
	if strings.Count(text, ":") == 1 {
		host, port, _ = strings.Cut(text, ":")
		return host, port
	}
	return text, ""
}
