package fence

import (
	"fmt"
	"net/netip"
	"strconv"
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

// cephAddresses are the addresses that an entry of a NetworkFence means to Ceph: a range; or one client, also with the type of its
// address, a port or a nonce (ceph: src/msg/msg_types.cc, entity_addr_t::parse), as Rook 1.12 wrote it: 10.0.0.1:0/32.
func cephAddresses(text string) (netip.Prefix, bool) {
	text = strings.TrimSpace(text)
	for _, kind := range []string{"v1:", "v2:", "any:"} {
		text = strings.TrimPrefix(text, kind)
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		return p.Masked(), true
	}
	host, nonce, has := strings.Cut(text, "/")
	if _, err := strconv.ParseUint(nonce, 10, 64); has && err != nil {
		return netip.Prefix{}, false
	}
	if a, err := netip.ParseAddrPort(host); err == nil {
		return HostPrefix(a.Addr()), true
	}
	if inside, closed := strings.CutSuffix(host, "]"); closed {
		host = strings.TrimPrefix(inside, "[")
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}, false
	}
	return HostPrefix(a), true
}
