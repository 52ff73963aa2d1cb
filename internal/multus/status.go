package multus

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// Reported is an interface of a pod that Multus reports.
type Reported struct {
	// Network as Multus names it: <namespace>/<name>, for others than the
	// cluster network.
	Network   string   `json:"name"`
	Interface string   `json:"interface"`
	IPs       []string `json:"ips"`
	MAC       string   `json:"mac"`
}

// ReportedInterfaces returns the interfaces that Multus reports for a pod, the cluster
// network included. There are none while Multus has reported nothing.
func ReportedInterfaces(annotations map[string]string) ([]Reported, error) {
	text, ok := annotations[NetworkStatusAnnotation]
	if !ok {
		text = annotations[oldNetworkStatusAnnotation]
	}
	if text == "" {
		return nil, nil
	}
	var reported []Reported
	if err := json.Unmarshal([]byte(text), &reported); err != nil {
		return nil, fmt.Errorf("reading the network status: %w", err)
	}
	return reported, nil
}

// AddressesOn returns the addresses that are reported for the attachment: the network *and* the interface must match. It
// returns none while Multus has not reported it; the pod's own address is never a stand-in.
func AddressesOn(reported []Reported, a Attachment) ([]netip.Addr, error) {
	if a.IsZero() {
		return nil, nil
	}
	var addresses []netip.Addr
	for _, r := range reported {
		if r.Network != a.Network.String() || r.Interface != a.Interface {
			continue
		}
		for _, ip := range r.IPs {
			address, err := netip.ParseAddr(ip)
			if err != nil {
				return nil, fmt.Errorf("reading the network status of %s: %w", a, err)
			}
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}
