package storage

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// ReportedAddresses returns the addresses that Multus reports for the
// attachment: the network *and* the interface must match. It returns none
// while Multus has not reported it; the pod's own address is never a stand-in.
func ReportedAddresses(annotations map[string]string, a Attachment) ([]netip.Addr, error) {
	if a.IsZero() {
		return nil, nil
	}
	text, ok := annotations[NetworkStatusAnnotation]
	if !ok {
		text = annotations[OldNetworkStatusAnnotation]
	}
	if text == "" {
		return nil, nil
	}
	var statuses []struct {
		Name      string   `json:"name"`
		Interface string   `json:"interface"`
		IPs       []string `json:"ips"`
	}
	if err := json.Unmarshal([]byte(text), &statuses); err != nil {
		return nil, fmt.Errorf("reading the network status: %w", err)
	}
	var addresses []netip.Addr
	for _, s := range statuses {
		if s.Name != a.Network.String() || s.Interface != a.Interface {
			continue
		}
		for _, ip := range s.IPs {
			address, err := netip.ParseAddr(ip)
			if err != nil {
				return nil, fmt.Errorf("reading the network status of %s: %w", a, err)
			}
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}
