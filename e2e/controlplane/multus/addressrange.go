package multus

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// addressRange is a range of addresses in one subnet.
type addressRange struct {
	subnet      netip.Prefix
	first, last netip.Addr
	excluded    []netip.Prefix
}

// newRange makes a range. Without start or end it covers the subnet but for
// those addresses that hosts can't have: the network's own and, in IPv4, the
// broadcast address.
func newRange(subnet, start, end string) (addressRange, error) {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil {
		return addressRange{}, fmt.Errorf("parsing subnet %q: %w", subnet, err)
	}
	prefix = prefix.Masked()
	result := addressRange{subnet: prefix, first: prefix.Addr().Next(), last: lastOf(prefix)}
	if prefix.Addr().Is4() && prefix.Bits() < 31 {
		result.last = result.last.Prev()
	}
	if start != "" {
		if result.first, err = addressIn(prefix, start); err != nil {
			return addressRange{}, err
		}
	}
	if end != "" {
		if result.last, err = addressIn(prefix, end); err != nil {
			return addressRange{}, err
		}
	}
	return result, nil
}

// splitRange takes apart whereabouts' way to write start and end into the
// range: "192.168.2.225-192.168.2.230/28".
func splitRange(text, start, end string) (subnet, first, last string) {
	from, to, found := strings.Cut(text, "-")
	if !found {
		return text, start, end
	}
	to = strings.TrimSpace(to)
	address, bits, _ := strings.Cut(to, "/")
	return address + "/" + bits, strings.TrimSpace(from), address
}

func addressIn(prefix netip.Prefix, text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("parsing address %q: %w", text, err)
	}
	if !prefix.Contains(address) {
		return netip.Addr{}, fmt.Errorf("address %s is not in subnet %s", address, prefix)
	}
	return address, nil
}

// reserveGateway keeps the gateway from being given away; host-local's default
// is the subnet's first address.
func (r *addressRange) reserveGateway(gateway string) error {
	if gateway != "" {
		return r.exclude(gateway)
	}
	first := r.subnet.Addr().Next()
	r.excluded = append(r.excluded, netip.PrefixFrom(first, first.BitLen()))
	return nil
}

// exclude takes an address or a subnet out of the range.
func (r *addressRange) exclude(text string) error {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		address, addressErr := netip.ParseAddr(text)
		if addressErr != nil {
			return fmt.Errorf("parsing excluded %q: %w", text, err)
		}
		prefix = netip.PrefixFrom(address, address.BitLen())
	}
	r.excluded = append(r.excluded, prefix.Masked())
	return nil
}

// next returns the first address of the range for which free is true.
func (r addressRange) next(free func(netip.Addr) bool) (netip.Addr, bool) {
	for address := r.first; address.IsValid() && address.Compare(r.last) <= 0; address = address.Next() {
		index := slices.IndexFunc(r.excluded, func(p netip.Prefix) bool { return p.Contains(address) })
		if index >= 0 {
			// One step over the whole of it: an excluded IPv6 subnet is too
			// large to be walked through.
			address = lastOf(r.excluded[index])
			continue
		}
		if free(address) {
			return address, true
		}
	}
	return netip.Addr{}, false
}

// lastOf returns the last address of a prefix.
func lastOf(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 1 << (7 - bit%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}
