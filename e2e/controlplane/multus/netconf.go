package multus

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// pool is a range of addresses in one subnet. Each interface gets one.
type pool struct {
	subnet netip.Prefix
	// first is never the subnet's first address unless asked for: that is the gateway's. last is optional.
	first, last netip.Addr
}

// rangeConf is a range of addresses, as host-local or whereabouts writes it.
type rangeConf struct {
	Subnet     string `json:"subnet"`
	RangeStart string `json:"rangeStart"`
	RangeEnd   string `json:"rangeEnd"`
	// Range is whereabouts' subnet. Its further options are refused: no test needs them.
	Range   string   `json:"range"`
	Start   string   `json:"range_start"`
	End     string   `json:"range_end"`
	Exclude []string `json:"exclude"`
}

// netConf is what the simulator needs of a CNI configuration.
type netConf struct {
	IPAM struct {
		Type string `json:"type"`
		rangeConf
		// Ranges of host-local: each set gives one address, here from its first range.
		Ranges [][]rangeConf `json:"ranges"`
		// IPRanges of whereabouts: each gives one address.
		IPRanges []rangeConf `json:"ipRanges"`
	} `json:"ipam"`
	// Plugins makes it a configuration list; the first plugin makes the
	// interface and holds the IPAM section.
	Plugins []netConf `json:"plugins"`
}

// parseConfig reads the spec.config of a NetworkAttachmentDefinition.
func parseConfig(config string) ([]pool, error) {
	var conf netConf
	if err := json.Unmarshal([]byte(config), &conf); err != nil {
		return nil, fmt.Errorf("parsing spec.config: %w", err)
	}
	if len(conf.Plugins) > 0 {
		conf = conf.Plugins[0]
	}
	ipam := conf.IPAM
	switch ipam.Type {
	case "host-local", "whereabouts":
	case "", "dhcp": // an interface without addresses, or with addresses from a server that isn't there
		return nil, nil
	default:
		return nil, fmt.Errorf("IPAM type %q is not simulated", ipam.Type)
	}
	ranges := ipam.IPRanges
	if ipam.Subnet+ipam.Range != "" {
		ranges = append([]rangeConf{ipam.rangeConf}, ranges...)
	}
	for _, set := range ipam.Ranges {
		if len(set) > 0 {
			ranges = append(ranges, set[0])
		}
	}
	var pools []pool
	for _, r := range ranges {
		p, err := r.pool()
		if err != nil {
			return nil, err
		}
		pools = append(pools, p)
	}
	return pools, nil
}

func (r rangeConf) pool() (pool, error) {
	if r.Start+r.End != "" || len(r.Exclude) > 0 {
		return pool{}, fmt.Errorf("range_start, range_end and exclude of range %s are not simulated", r.Range)
	}
	subnet, err := netip.ParsePrefix(r.Subnet + r.Range)
	if err != nil {
		return pool{}, fmt.Errorf("parsing subnet: %w", err)
	}
	subnet = subnet.Masked()
	p := pool{subnet: subnet, first: subnet.Addr().Next().Next()}
	if r.RangeStart != "" {
		if p.first, err = addressIn(subnet, r.RangeStart); err != nil {
			return pool{}, err
		}
	}
	if r.RangeEnd != "" {
		if p.last, err = addressIn(subnet, r.RangeEnd); err != nil {
			return pool{}, err
		}
	}
	return p, nil
}

func addressIn(subnet netip.Prefix, text string) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("parsing address %q: %w", text, err)
	}
	if !subnet.Contains(address) {
		return netip.Addr{}, fmt.Errorf("address %s is not in subnet %s", address, subnet)
	}
	return address, nil
}

// next returns the first address of the pool for which free is true.
func (p pool) next(free func(netip.Addr) bool) (netip.Addr, bool) {
	for a := p.first; p.subnet.Contains(a) && (!p.last.IsValid() || a.Compare(p.last) <= 0); a = a.Next() {
		broadcast := a.Is4() && !p.subnet.Contains(a.Next())
		if !broadcast && free(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}
