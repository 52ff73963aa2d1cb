package multus

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Identity is what the server of a volume keeps wherever it runs, so that its
// NFS address survives a move. The zero Identity leaves it to the network's IPAM.
type Identity struct {
	// Addresses as ParseAddresses returns them.
	Addresses string
	// MAC as ParseMAC returns it.
	MAC string
}

// IsZero reports whether nothing is fixed.
func (i Identity) IsZero() bool { return i == Identity{} }

// IPs are the addresses one by one, as Multus' field ips takes them.
func (i Identity) IPs() []string {
	if i.Addresses == "" {
		return nil
	}
	return strings.Split(i.Addresses, ",")
}

// Prefixes are the addresses with their prefix lengths; without one, an address is a prefix of its own.
func (i Identity) Prefixes() (prefixes []netip.Prefix) {
	for _, text := range i.IPs() {
		if p, err := netip.ParsePrefix(text); err == nil {
			prefixes = append(prefixes, p)
		} else if a, err := netip.ParseAddr(text); err == nil {
			prefixes = append(prefixes, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return prefixes
}

// Or takes what is not fixed here from the other.
func (i Identity) Or(other Identity) Identity {
	if i.Addresses == "" {
		i.Addresses = other.Addresses
	}
	if i.MAC == "" {
		i.MAC = other.MAC
	}
	return i
}

// Shared names what both identities claim, "" when nothing. The prefix length
// of an address makes no difference: the network would still see it twice.
func (i Identity) Shared(other Identity) string {
	theirs := other.Parts()
	for _, mine := range i.Parts() {
		if slices.Contains(theirs, mine) {
			return mine
		}
	}
	return ""
}

// Parts are the addresses and the MAC one by one, as Shared words them. The
// prefix length of an address makes no difference.
func (i Identity) Parts() []string {
	var parts []string
	for _, ip := range i.IPs() {
		address, _, _ := strings.Cut(ip, "/")
		parts = append(parts, "address "+address)
	}
	if i.MAC != "" {
		parts = append(parts, "MAC address "+i.MAC)
	}
	return parts
}

// Errors of values that did not parse. What follows in a message says what is wrong.
var (
	errNotAddresses = errors.New("must be one IP address of each family at most, with or without a prefix length, separated by a comma")
	errNotAMAC      = errors.New("must be a unicast MAC address such as 02:00:00:00:00:01")
)

// ParseAddresses reads fixed addresses, 192.168.0.10/24,fd00::10/64, and returns
// them as they are written everywhere else: IPv4 first, no space. "" fixes none.
func ParseAddresses(value string) (string, error) {
	if strings.TrimSpace(value) == "" {
		return "", nil
	}
	var v4, v6 string
	for item := range strings.SplitSeq(value, ",") {
		item = strings.TrimSpace(item)
		address, text, err := parseAddress(item)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errNotAddresses, err)
		}
		family := &v6
		if address.Is4() {
			family = &v4
		}
		if *family != "" {
			return "", fmt.Errorf("%w: %s and %s are of one family", errNotAddresses, *family, text)
		}
		*family = text
	}
	return strings.Join(slices.DeleteFunc([]string{v4, v6}, func(s string) bool { return s == "" }), ","), nil
}

// ParseMACPrefix reads the first octets of MAC addresses, and returns them in lower case.
func ParseMACPrefix(value string) (string, error) {
	octets := strings.Count(value, ":") + 1
	if octets > 6 {
		return "", fmt.Errorf("%w: %q has more than six octets", errNotAMAC, value)
	}
	whole, err := net.ParseMAC(value + strings.Repeat(":00", 6-octets))
	if err != nil || len(whole) != 6 {
		return "", fmt.Errorf("%w: %q is not the beginning of one, such as 02:00:00", errNotAMAC, value)
	}
	return whole.String()[:3*octets-1], nil
}

func parseAddress(item string) (address netip.Addr, text string, err error) {
	if strings.Contains(item, "/") {
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			return address, "", fmt.Errorf("%q is not an address with a prefix length", item)
		}
		if why := notAHost(prefix); why != "" {
			return address, "", fmt.Errorf("%s is %s", item, why)
		}
		address, text = prefix.Addr(), prefix.String()
	} else {
		if address, err = netip.ParseAddr(item); err != nil {
			return address, "", fmt.Errorf("%q is not an IP address", item)
		}
		text = address.String()
	}
	switch {
	case address.Is4In6():
		return address, "", fmt.Errorf("%s is an IPv4 address in IPv6 form: write %s", item, address.Unmap())
	case address.Zone() != "", address.IsLinkLocalUnicast():
		return address, "", fmt.Errorf("%s reaches no further than its link", item)
	case address.IsUnspecified(), address.IsLoopback(), address.IsMulticast():
		return address, "", fmt.Errorf("%s is no address that a server can have", item)
	}
	for _, block := range reserved {
		if block.Contains(address) {
			return address, "", fmt.Errorf("%s is reserved (%s): no interface can have it", item, block)
		}
	}
	return address, text, nil
}

// reserved blocks of the IANA IPv4 Special-Purpose Address Registry: "this
// network" (RFC 791), and class E with the limited broadcast address (RFC 1112).
var reserved = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4")}

// notAHost says which address of its network the address is, "" where a host
// can have it. Hosts have both addresses of an IPv4 /31 (RFC 3021) and of an
// IPv6 /127 (RFC 6164). IPv6 has no broadcast.
func notAHost(p netip.Prefix) string {
	first := p.Masked().Addr()
	switch {
	case p.Addr().BitLen()-p.Bits() < 2:
		return ""
	case p.Addr() == first && p.Addr().Is4():
		return "the network's own address"
	case p.Addr() == first: // RFC 4291, 2.6.1
		return "the anycast address of the network's routers"
	case p.Addr().Is4() && !p.Contains(p.Addr().Next()):
		return "the network's broadcast address"
	}
	return ""
}

// ParseMAC reads a fixed MAC address and returns it in lower case, with colons. "" fixes none.
func ParseMAC(value string) (string, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return "", nil
	}
	mac, err := net.ParseMAC(value)
	if err != nil || len(mac) != 6 {
		return "", fmt.Errorf("%w: %q has another form", errNotAMAC, value)
	}
	// The lowest bit of the first byte marks a group of receivers (IEEE 802).
	if mac[0]&1 != 0 {
		return "", fmt.Errorf("%w: %s is for a group of receivers", errNotAMAC, mac)
	}
	if mac.String() == "00:00:00:00:00:00" {
		return "", fmt.Errorf("%w: %s belongs to no interface", errNotAMAC, mac)
	}
	return mac.String(), nil
}
