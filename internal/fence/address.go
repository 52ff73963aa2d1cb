package fence

import (
	"fmt"
	"net/netip"
	"strings"
)

// HostPrefix is the prefix of one address alone: /32, or /128 for IPv6.
func HostPrefix(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	return netip.PrefixFrom(a, a.BitLen())
}

// ParseClientCIDR reads the address of one storage client, with or without a mask.
// A mask must cover a single address: a wider one would block other clients.
func ParseClientCIDR(text string) (netip.Prefix, error) {
	var prefix netip.Prefix
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return prefix, fmt.Errorf("%q is no address in CIDR form", text)
		}
		if !p.IsSingleIP() {
			return prefix, fmt.Errorf("%s is wider than one address", text)
		}
		prefix = HostPrefix(p.Addr())
	} else {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return prefix, fmt.Errorf("%q is no address", text)
		}
		prefix = HostPrefix(a)
	}
	a := prefix.Addr()
	if a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.IsLinkLocalUnicast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return netip.Prefix{}, fmt.Errorf("%s is not an address of one host", a)
	}
	return prefix, nil
}
