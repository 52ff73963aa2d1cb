package fencing

import (
	"net/netip"
	"slices"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// near returns the nodes and records that can matter to a machine: those with its name, its system UUID or one of its
// addresses, and those in an incident. In a large cluster these are few. With the cross-check, any node may be a client
// that Ceph names, so all count.
func (r *FenceReader) near(f *fence.Facts, around *surroundings, records []v1alpha1.NodeFence) ([]fence.Node, []v1alpha1.NodeFence) {
	if r.config.CephClients.Mode == config.CrossCheck {
		return around.nodes, records
	}
	mine, cidrs := addressesOf(f)
	is := func(m v1alpha1.MachineIdentity) bool {
		return m.SystemUUID != "" && (m.SystemUUID == f.Status.Node.SystemUUID || m.SystemUUID == f.Node.Machine.SystemUUID)
	}
	has := func(addresses []netip.Addr) bool {
		return slices.ContainsFunc(addresses, func(a netip.Addr) bool { return mine[a] })
	}
	names := map[string]bool{f.Node.Name: true}
	for i := range around.nodes {
		n := &around.nodes[i]
		names[n.Name] = names[n.Name] || is(n.Machine) || has(n.Addresses) || has(around.pods.clients[n.Name])
	}
	for i := range records {
		n := &records[i]
		name := NodeOfFence(n)
		names[name] = names[name] || !settled(n) || is(n.Status.Node) || slices.ContainsFunc(n.Status.Identities, func(i v1alpha1.StorageIdentity) bool {
			return slices.ContainsFunc(i.Addresses, func(a v1alpha1.ClientAddress) bool { return cidrs[a.CIDR] })
		})
	}
	var nodes []fence.Node
	for i := range around.nodes {
		if names[around.nodes[i].Name] {
			nodes = append(nodes, around.nodes[i])
		}
	}
	var of []v1alpha1.NodeFence
	for i := range records {
		if names[NodeOfFence(&records[i])] {
			of = append(of, records[i])
		}
	}
	return nodes, of
}

// addressesOf a machine: those on record, those that its sources report, and those that its fences block.
func addressesOf(f *fence.Facts) (addresses map[netip.Addr]bool, cidrs map[string]bool) {
	addresses, cidrs = map[netip.Addr]bool{}, map[string]bool{}
	add := func(text string) {
		if prefix, err := fence.ParseClientCIDR(text); err == nil {
			addresses[prefix.Addr()], cidrs[fence.HostPrefix(prefix.Addr()).String()] = true, true
		}
	}
	for _, i := range slices.Concat(f.Status.Identities, f.Ledger) {
		for _, a := range i.Addresses {
			add(a.CIDR)
		}
	}
	for _, fenced := range f.Status.Fences {
		for _, text := range fenced.CIDRs {
			add(text)
		}
	}
	return addresses, cidrs
}
