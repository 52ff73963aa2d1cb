package watchers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// Blocked is an entry of Ceph's blocklist: a range of addresses, one address, or
// one client. Ceph itself blocks single clients, for a day or an hour: whoever
// takes the lock of a dead client blocks it first, and an MDS blocks what it
// evicts. Those aren't fences.
type Blocked struct {
	Range  netip.Prefix
	Client *Address // of a single client
	Until  time.Time
}

// Covers tells whether all clients at an address are blocked by this.
func (b Blocked) Covers(ip netip.Addr) bool {
	return b.Client == nil && b.Range.Contains(ip.Unmap())
}

// BlocklistArgs are the arguments of the `ceph` command that ParseBlocklist reads.
func BlocklistArgs() []string { return []string{"osd", "blocklist", "ls", "--format", "json"} }

// ParseBlocklist reads the output of `ceph osd blocklist ls --format json`: a list
// of addresses and, right after it, one of ranges (since 16.2; before that there
// are no ranges).
func ParseBlocklist(output []byte) ([]Blocked, error) {
	values, err := split(output)
	if err != nil {
		return nil, fmt.Errorf("blocklist: %w", err)
	}
	var all []Blocked
	for _, value := range values {
		var entries []struct {
			Address string `json:"addr"`
			Range   string `json:"range"`
			Until   string `json:"until"`
		}
		if err := json.Unmarshal(value.json, &entries); err != nil {
			return nil, fmt.Errorf("blocklist: %w", err)
		}
		for _, entry := range entries {
			blocked, err := parseBlocked(entry.Address, entry.Range)
			if err == nil {
				blocked.Until, err = time.Parse("2006-01-02T15:04:05.999999-0700", entry.Until)
			}
			if err != nil {
				return nil, fmt.Errorf("blocklist: %w", err)
			}
			all = append(all, blocked)
		}
	}
	return all, nil
}

func parseBlocked(single, rangeText string) (Blocked, error) {
	if (single == "") == (rangeText == "") {
		return Blocked{}, errors.New("an entry must have an address or a range")
	}
	address, err := ParseAddress(single + rangeText)
	if err != nil {
		return Blocked{}, err
	}
	if rangeText != "" { // 10.0.0.0:0/24: the nonce is the bits
		blocked := netip.PrefixFrom(address.IP, int(min(address.Nonce, 1000)))
		if !blocked.IsValid() || address.Port != 0 {
			return Blocked{}, fmt.Errorf("%q is no range", rangeText)
		}
		return Blocked{Range: blocked.Masked()}, nil
	}
	blocked := Blocked{Range: netip.PrefixFrom(address.IP, address.IP.BitLen())}
	if address.Port != 0 || address.Nonce != 0 {
		blocked.Client = &address
	}
	return blocked, nil
}
