package fencing

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestNearKeepsAllThatMatter(t *testing.T) {
	const address = "10.0.0.1"
	a := netip.MustParseAddr(address)
	identities := []v1alpha1.StorageIdentity{{Driver: rbd, ClusterID: "a", Addresses: []v1alpha1.ClientAddress{{CIDR: address + "/32"}}}}
	type other struct {
		node   fence.Node
		record v1alpha1.NodeFence
		client []netip.Addr
	}
	for name, c := range map[string]struct {
		change func(*other)
		mine   fence.Facts
		asks   config.Switch
		want   bool
	}{
		"it has nothing in common":              {func(*other) {}, fence.Facts{Status: v1alpha1.NodeFenceStatus{Identities: identities}}, "", false},
		"the same, and Ceph is asked":           {func(*other) {}, fence.Facts{Status: v1alpha1.NodeFenceStatus{Identities: identities}}, config.CrossCheck, true},
		"its Node has a recorded address":       {func(o *other) { o.node.Addresses = []netip.Addr{a} }, fence.Facts{Status: v1alpha1.NodeFenceStatus{Identities: identities}}, "", true},
		"its Node has an address of the source": {func(o *other) { o.node.Addresses = []netip.Addr{a} }, fence.Facts{Ledger: identities}, "", true},
		"its Node has a blocked address":        {func(o *other) { o.node.Addresses = []netip.Addr{a} }, fence.Facts{Status: v1alpha1.NodeFenceStatus{Fences: []v1alpha1.Fence{{CIDRs: []string{address + "/32"}}}}}, "", true},
		"its pods have the address":             {func(o *other) { o.client = []netip.Addr{a} }, fence.Facts{Status: v1alpha1.NodeFenceStatus{Identities: identities}}, "", true},
		"its record has the address":            {func(o *other) { o.record.Status.Identities = identities }, fence.Facts{Status: v1alpha1.NodeFenceStatus{Identities: identities}}, "", true},
		"its Node has the system UUID":          {func(o *other) { o.node.Machine.SystemUUID = "machine-1" }, fence.Facts{Status: v1alpha1.NodeFenceStatus{Node: v1alpha1.MachineIdentity{SystemUUID: "machine-1"}}}, "", true},
		"its record has the system UUID":        {func(o *other) { o.record.Status.Node.SystemUUID = "machine-1" }, fence.Facts{Node: fence.Node{Machine: v1alpha1.MachineIdentity{SystemUUID: "machine-1"}}}, "", true},
		"it is in an incident":                  {func(o *other) { o.record.Status.Phase = v1alpha1.NodeLost }, fence.Facts{}, "", true},
		"its record is not labelled":            {func(o *other) { o.record.Labels = nil }, fence.Facts{}, "", true},
		"it has the name":                       {func(o *other) { o.record.Status.NodeName = "node-1" }, fence.Facts{}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			o := other{node: fence.Node{Name: "node-2", Exists: true}}
			o.record.Name, o.record.Labels = "node-2", map[string]string{fence.PhaseLabel: string(v1alpha1.NodeHealthy)}
			o.record.Status.Phase = v1alpha1.NodeHealthy
			c.change(&o)
			c.mine.Node.Name = "node-1"
			r := &FenceReader{config: config.Fencing{CephClients: config.CephClients{Mode: c.asks}}}
			around := &surroundings{nodes: []fence.Node{o.node}, pods: &podsAround{clients: map[string][]netip.Addr{"node-2": o.client}}}
			_, records := r.near(&c.mine, around, []v1alpha1.NodeFence{o.record})
			must.Equal(t, len(records) == 1, c.want)
		})
	}
}

// A machine's Node and record are kept or left out together.
func TestNearKeepsNodeAndRecordTogether(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.1")
	mine := fence.Facts{Node: fence.Node{Name: "node-1"}, Ledger: []v1alpha1.StorageIdentity{{Addresses: []v1alpha1.ClientAddress{{CIDR: "10.0.0.1/32"}}}}}
	around := &surroundings{pods: &podsAround{}}
	var records []v1alpha1.NodeFence
	for i := range 10 {
		n := fence.Node{Name: fmt.Sprint("node-", i), Exists: true}
		if i%2 == 0 {
			n.Addresses = []netip.Addr{a}
		}
		around.nodes = append(around.nodes, n)
		var record v1alpha1.NodeFence
		record.Name, record.Labels, record.Status.Phase = n.Name, map[string]string{fence.PhaseLabel: string(v1alpha1.NodeHealthy)}, v1alpha1.NodeHealthy
		records = append(records, record)
	}
	nodes, near := (&FenceReader{}).near(&mine, around, records)
	var names, of []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	for _, n := range near {
		of = append(of, n.Name)
	}
	want := []string{"node-0", "node-1", "node-2", "node-4", "node-6", "node-8"}
	must.True(t, slices.Equal(names, want) && slices.Equal(of, want), "got %v and %v", names, of)
}
