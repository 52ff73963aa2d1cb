package rwx

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/multus"
)

// Permitted is what volumes may request, by the configuration: whoever may annotate a claim would otherwise move CSI plugin pods
// onto any network, and take any address there.
type Permitted struct {
	Networks []multus.Network
	// Addresses are what claims may ask for. PersistentVolumes belong to administrators, who may ask for any.
	Addresses []AddressGrant
}

// AddressGrant lets claims ask for fixed addresses on one network.
type AddressGrant struct {
	// Network; zero is the default network of RWX volumes.
	Network multus.Network
	// Namespaces of the claims; none is all.
	Namespaces []string
	Ranges     []netip.Prefix
	// MACPrefixes are the first octets of MAC addresses, in lower case: 02:00:00.
	MACPrefixes []string
}

// Why a request is not permitted, and what to do.
const (
	// NotPermitted is about a network that Permitted.Networks lacks.
	NotPermitted = "no volume may use the network: an administrator lists it in longhorn.networks.perVolume of Fairlead's configuration"
	// askForGrant is about an address that Permitted.Addresses lacks.
	askForGrant = "an administrator lists addresses for the namespace in longhorn.networks.fixedAddresses of Fairlead's configuration, or sets the annotation on the PersistentVolume instead"
)

// notGranted is the annotation for what an object may not ask for on a network, why, and what to do; "" is none.
func (p Permitted) notGranted(s Asker, network multus.Network, i multus.Identity) (key, why string) {
	if s.Kind != ClaimKind {
		return "", ""
	}
	granted := func(has func(AddressGrant) bool) bool {
		return slices.ContainsFunc(p.Addresses, func(g AddressGrant) bool {
			return g.Network == network && (len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, s.Namespace)) && has(g)
		})
	}
	for _, fixed := range i.Prefixes() {
		inRange := func(g AddressGrant) bool {
			return slices.ContainsFunc(g.Ranges, func(r netip.Prefix) bool { return r.Contains(fixed.Addr().Unmap()) })
		}
		if !granted(inRange) {
			return VolumeAddressesAnnotation, fmt.Sprintf("claims of namespace %s may not ask for address %s: %s", s.Namespace, fixed.Addr(), askForGrant)
		}
	}
	hasPrefix := func(g AddressGrant) bool {
		return slices.ContainsFunc(g.MACPrefixes, func(prefix string) bool { return strings.HasPrefix(i.MAC+":", prefix+":") })
	}
	if i.MAC != "" && !granted(hasPrefix) {
		return VolumeMACAnnotation, fmt.Sprintf("claims of namespace %s may not ask for MAC address %s: %s", s.Namespace, i.MAC, askForGrant)
	}
	return "", ""
}
