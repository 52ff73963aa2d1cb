package watchers

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Address is where a client of Ceph is: its IP address, and the port and the
// nonce that tell it from other clients there. A client's port is 0.
type Address struct {
	IP    netip.Addr
	Port  uint16
	Nonce uint32
}

// String is the form that Ceph itself writes and takes: 10.0.0.1:0/4225036114,
// [2001:db8::1]:0/123.
func (a Address) String() string {
	return netip.AddrPortFrom(a.IP, a.Port).String() + "/" + strconv.FormatUint(uint64(a.Nonce), 10)
}

// maxAddress is longer than any list of addresses of one client.
const maxAddress = 1024

var errNotAnAddress = errors.New("must be an address of a Ceph client, as in 10.0.0.1:0/123 or [2001:db8::1]:0/123")

// ParseAddress reads an address as Ceph writes it: with a port, with or without
// a nonce, with or without the messenger's version before it (v1:, v2:, any:),
// and as a list of these in brackets, if all have one IP address.
//
// IPv6 has to be in brackets. Without them 2001:db8::1:0 is an address of its
// own, or one with a port cut on; which of them can't be told.
func ParseAddress(text string) (Address, error) {
	if len(text) > maxAddress {
		return Address{}, fmt.Errorf("%w, not %d bytes", errNotAnAddress, len(text))
	}
	// [v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]; [2001:db8::1]:0/123 doesn't end so.
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		return parseAddressList(text, strings.TrimSuffix(inner, "]"))
	}
	return parseOneAddress(text)
}

func parseAddressList(text, inner string) (Address, error) {
	var first Address
	for i, element := range strings.Split(inner, ",") {
		address, err := parseOneAddress(element)
		switch {
		case err != nil:
			return Address{}, fmt.Errorf("%q: %w", text, err)
		case i == 0:
			first = address
		case address.IP != first.IP:
			return Address{}, fmt.Errorf("%q is of more than one IP address: which of them to fence can't be told", text)
		}
	}
	return first, nil
}

func parseOneAddress(text string) (Address, error) {
	rest := text
	for _, messenger := range []string{"v1:", "v2:", "any:"} {
		if after, ok := strings.CutPrefix(rest, messenger); ok {
			rest = after
			break
		}
	}
	var nonce uint64
	if host, digits, ok := strings.Cut(rest, "/"); ok {
		var err error
		if nonce, err = strconv.ParseUint(digits, 10, 32); err != nil {
			return Address{}, fmt.Errorf("%w, not %q: its nonce is no number", errNotAnAddress, text)
		}
		rest = host
	}
	parsed, err := netip.ParseAddrPort(rest)
	if err != nil {
		return Address{}, fmt.Errorf("%w, not %q", errNotAnAddress, text)
	}
	address := Address{IP: parsed.Addr().Unmap(), Port: parsed.Port(), Nonce: uint32(nonce)}
	if err := usable(address.IP); err != nil {
		return Address{}, fmt.Errorf("%q %w", text, err)
	}
	return address, nil
}

// usable refuses what no client can have. 0.0.0.0 is how Ceph writes that it
// doesn't know; a zone means something on one machine only.
func usable(ip netip.Addr) error {
	switch {
	case ip.IsUnspecified():
		return errors.New("is no address of anybody")
	case ip.IsMulticast():
		return errors.New("is a multicast address")
	case ip.Zone() != "":
		return errors.New("has a zone")
	}
	return nil
}
