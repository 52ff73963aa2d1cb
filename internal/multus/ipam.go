package multus

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
)

// needsIPAM are CNI's plugins that connect pods to a network and leave addresses to an ipam plugin (containernetworking/plugins v1.9,
// sriov-cni v2.10). Other plugins may assign addresses themselves.
var needsIPAM = []string{"macvlan", "ipvlan", "bridge", "host-device", "vlan", "sriov", "ib-sriov", "ipoib"}

// ipam of a CNI configuration, as far as the plugins static, host-local and whereabouts read it.
type ipam struct {
	Type string `json:"type"`
	// DataDir of host-local: people name one that all nodes share, as over NFS.
	DataDir string `json:"dataDir"`
	whereaboutsRange
	IPRanges []whereaboutsRange `json:"ipRanges"`
	hostLocalRange
	Ranges [][]hostLocalRange `json:"ranges"`
}

// hostLocalRange is a range of host-local; whereabouts has the same gateway.
type hostLocalRange struct {
	Subnet  string `json:"subnet"`
	Gateway string `json:"gateway"`
}

type whereaboutsRange struct {
	Range      string `json:"range"`
	RangeStart string `json:"range_start"`
	RangeEnd   string `json:"range_end"`
}

// Doubt says why pods on a network may get no address of their own, by the config of its NetworkAttachmentDefinition; "" if nothing is
// known against it. pods is how many need an address.
func Doubt(config string, pods int) string {
	kind, assigns := ipamOf(config)
	switch {
	case config == "" || kind == "":
		return "" // a file on each node, which may differ, or no CNI configuration at all
	case assigns.Type == "" && slices.Contains(needsIPAM, kind):
		return fmt.Sprintf("its config has no ipam, and plugin %s assigns no addresses: pods on it get none; add an ipam such as whereabouts", kind)
	case assigns.Type == "static":
		return "its ipam is static, which gives every pod the same addresses: use one that gives each pod its own, such as whereabouts"
	case assigns.Type == "host-local" && assigns.DataDir == "":
		return "its ipam is host-local, which assigns addresses on each node by itself: pods on two nodes get the same one. Use one for the whole cluster, such as whereabouts"
	case assigns.Type == "whereabouts":
		if has, known := assigns.capacity(); known && has < float64(pods) {
			return fmt.Sprintf("its range has %.0f addresses, and %d pods need one: CSI plugin pods, instance managers and the server of each RWX volume; enlarge the range", has, pods)
		}
	}
	return ""
}

// ipamOf is the first plugin of a config, and its ipam.
func ipamOf(config string) (kind string, assigns ipam) {
	type plugin struct {
		Type string `json:"type"`
		IPAM ipam   `json:"ipam"`
	}
	var c struct {
		plugin
		Plugins []plugin `json:"plugins"`
	}
	if json.Unmarshal([]byte(config), &c) != nil {
		return "", ipam{}
	}
	if len(c.Plugins) > 0 {
		return c.Plugins[0].Type, c.Plugins[0].IPAM
	}
	return c.Type, c.IPAM
}

// capacity is the number of addresses in all ranges.
func (i ipam) capacity() (all float64, known bool) {
	for _, r := range append(i.IPRanges, i.whereaboutsRange) {
		if r.Range == "" {
			continue
		}
		n, ok := r.size()
		if !ok {
			return 0, false
		}
		all, known = all+n, true
	}
	return all, known
}

// size of a range: "192.168.2.0/24", "192.168.2.10-192.168.2.20/24", or with a start and an end.
func (r whereaboutsRange) size() (float64, bool) {
	start, end := r.RangeStart, r.RangeEnd
	text := r.Range
	if first, rest, cut := strings.Cut(text, "-"); cut {
		last, _, _ := strings.Cut(rest, "/")
		start, end, text = strings.TrimSpace(first), strings.TrimSpace(last), strings.TrimSpace(rest)
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return 0, false
	}
	bits := prefix.Addr().BitLen() - prefix.Bits()
	if start == "" || end == "" {
		return max(1, math.Exp2(float64(bits))-2), true // without the network's own and its last address
	}
	from, err1 := netip.ParseAddr(start)
	to, err2 := netip.ParseAddr(end)
	if err1 != nil || err2 != nil || to.Less(from) || from.BitLen() != to.BitLen() {
		return 0, false
	}
	return distance(from, to) + 1, true
}

func distance(from, to netip.Addr) (n float64) {
	a, b := from.AsSlice(), to.AsSlice()
	for i := range a {
		n = n*256 + float64(b[i]) - float64(a[i])
	}
	return n
}

// Misfit says why no pod can have a fixed address on a network, by the config of its NetworkAttachmentDefinition; "" if nothing is known
// against it. An address with a prefix length gives the pod a route to all of the prefix.
func Misfit(config string, fixed netip.Prefix) string {
	_, assigns := ipamOf(config)
	address := fixed.Addr()
	var subnets []string
	inside, wider := false, false
	for _, r := range slices.Concat([]hostLocalRange{assigns.hostLocalRange}, slices.Concat(assigns.Ranges...)) {
		if gateway, err := netip.ParseAddr(r.Gateway); err == nil && gateway == address {
			return "is the network's gateway"
		}
		subnets = append(subnets, r.Subnet)
	}
	for _, r := range append(assigns.IPRanges, assigns.whereaboutsRange) {
		_, text, cut := strings.Cut(r.Range, "-")
		if !cut {
			text = r.Range
		}
		subnets = append(subnets, strings.TrimSpace(text))
	}
	var same []string // of the family
	for _, text := range subnets {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is4() == address.Is4() {
			same, inside = append(same, p.Masked().String()), inside || p.Contains(address)
			wider = wider || p.Contains(address) && fixed.Bits() < p.Bits()
		}
	}
	switch {
	case len(same) > 0 && !inside:
		return "is outside of the network's subnet " + strings.Join(same, ", ")
	case wider:
		return fmt.Sprintf("has prefix length %d, which is wider than the network's subnet %s", fixed.Bits(), strings.Join(same, ", "))
	}
	return ""
}
