package multus

import (
	"encoding/json"
	"fmt"
)

// netConf is what the simulator needs of a CNI configuration.
type netConf struct {
	IPAM ipamConf `json:"ipam"`
	// Plugins makes it a configuration list; the first plugin makes the
	// interface and holds the IPAM section.
	Plugins []netConf `json:"plugins"`
}

// ipamConf has the fields of the IPAM plugins side by side; each plugin reads
// its own.
type ipamConf struct {
	Type string `json:"type"`

	Gateway string `json:"gateway"`

	// host-local: one range at the top level, or sets of ranges of which each
	// gives one address.
	Subnet     string             `json:"subnet"`
	RangeStart string             `json:"rangeStart"`
	RangeEnd   string             `json:"rangeEnd"`
	Ranges     [][]hostLocalRange `json:"ranges"`

	// whereabouts: one range at the top level, or several that each give one
	// address.
	Range              string             `json:"range"`
	WhereaboutsStart   string             `json:"range_start"`
	WhereaboutsEnd     string             `json:"range_end"`
	WhereaboutsExclude []string           `json:"exclude"`
	IPRanges           []whereaboutsRange `json:"ipRanges"`

	// static: the addresses themselves.
	Addresses []struct {
		Address string `json:"address"`
	} `json:"addresses"`
}

type hostLocalRange struct {
	Subnet     string `json:"subnet"`
	RangeStart string `json:"rangeStart"`
	RangeEnd   string `json:"rangeEnd"`
	Gateway    string `json:"gateway"`
}

type whereaboutsRange struct {
	Range      string   `json:"range"`
	RangeStart string   `json:"range_start"`
	RangeEnd   string   `json:"range_end"`
	Exclude    []string `json:"exclude"`
	Gateway    string   `json:"gateway"`
}

// addressing is how a network gives addresses: one from each pool, and the fixed ones.
type addressing struct {
	pools [][]addressRange
	fixed []string
}

// parseConfig reads the spec.config of a NetworkAttachmentDefinition.
func parseConfig(config string) (addressing, error) {
	var conf netConf
	if err := json.Unmarshal([]byte(config), &conf); err != nil {
		return addressing{}, fmt.Errorf("parsing spec.config: %w", err)
	}
	if len(conf.Plugins) > 0 {
		conf = conf.Plugins[0]
	}
	ipam := conf.IPAM
	switch ipam.Type {
	case "host-local":
		return ipam.hostLocal()
	case "whereabouts":
		return ipam.whereabouts()
	case "static":
		var result addressing
		for _, address := range ipam.Addresses {
			result.fixed = append(result.fixed, address.Address)
		}
		return result, nil
	case "", "dhcp":
		// An interface without addresses, or with addresses from a server that
		// isn't there.
		return addressing{}, nil
	default:
		return addressing{}, fmt.Errorf("IPAM type %q is not simulated", ipam.Type)
	}
}

func (c ipamConf) hostLocal() (addressing, error) {
	sets := c.Ranges
	if c.Subnet != "" {
		sets = append([][]hostLocalRange{{{c.Subnet, c.RangeStart, c.RangeEnd, c.Gateway}}}, sets...)
	}
	var result addressing
	for _, set := range sets {
		var pool []addressRange
		for _, conf := range set {
			parsed, err := newRange(conf.Subnet, conf.RangeStart, conf.RangeEnd)
			if err != nil {
				return addressing{}, err
			}
			if err := parsed.reserveGateway(conf.Gateway); err != nil {
				return addressing{}, err
			}
			pool = append(pool, parsed)
		}
		result.pools = append(result.pools, pool)
	}
	return result, nil
}

func (c ipamConf) whereabouts() (addressing, error) {
	ranges := c.IPRanges
	if c.Range != "" {
		ranges = append([]whereaboutsRange{{c.Range, c.WhereaboutsStart, c.WhereaboutsEnd, c.WhereaboutsExclude, c.Gateway}}, ranges...)
	}
	var result addressing
	for _, conf := range ranges {
		subnet, start, end := splitRange(conf.Range, conf.RangeStart, conf.RangeEnd)
		parsed, err := newRange(subnet, start, end)
		if err != nil {
			return addressing{}, err
		}
		for _, excluded := range conf.Exclude {
			if err := parsed.exclude(excluded); err != nil {
				return addressing{}, err
			}
		}
		if conf.Gateway != "" {
			if err := parsed.exclude(conf.Gateway); err != nil {
				return addressing{}, err
			}
		}
		result.pools = append(result.pools, []addressRange{parsed})
	}
	return result, nil
}
