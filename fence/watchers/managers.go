package watchers

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// MgrMetadataArgs are the arguments of the `ceph` command that ParseMgrMetadata
// reads.
func MgrMetadataArgs() []string { return []string{"mgr", "metadata", "--format", "json"} }

// ParseMgrMetadata reads where the managers are, standbys too, from the output of
// `ceph mgr metadata --format json`. None of these addresses may be fenced: what
// a manager does with images and file systems it does as a client.
func ParseMgrMetadata(output []byte) ([]netip.Addr, error) {
	text, err := one(output)
	if err != nil {
		return nil, fmt.Errorf("mgr metadata: %w", err)
	}
	var managers []struct {
		Name  string `json:"name"`
		Addrs string `json:"addrs"` // 10.99.0.6:0/127
	}
	if err := json.Unmarshal(text, &managers); err != nil {
		return nil, fmt.Errorf("mgr metadata: %w", err)
	}
	var hosts []netip.Addr
	for _, manager := range managers {
		address, err := ParseAddress(manager.Addrs)
		if err != nil {
			return nil, fmt.Errorf("mgr metadata: manager %q: %w", manager.Name, err)
		}
		hosts = append(hosts, address.IP)
	}
	return sorted(hosts), nil
}
