package rollout

import (
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// This file has the per-volume networks of the model.

var (
	// The first two may be the default network. The first always exists.
	existing = []multus.Network{networkA.Network, networkB.Network, {Namespace: "team-x", Name: "nfs"}, {Namespace: "team-y", Name: "nfs"}}
	// requestable are the requests of volumes.
	requestable = append([]multus.Network{{}}, existing...)
)

func genRequest(t *rapid.T) rwx.Request {
	r := rwx.Request{Network: rapid.SampledFrom(requestable).Draw(t, "requested network"), Source: "StorageClass x"}
	if rapid.IntRange(0, 2).Draw(t, "fixed") == 0 {
		r.Identity.Addresses = "192.168.0.10/24"
	}
	return r
}

// requests reports whether the pod requests the network. Networks that the installer removed count.
func (c *clientPod) requests(a multus.Attachment) bool {
	return c.Network == a || slices.Contains(c.VolumeNetworks, a) || c.stripped && a.ForVolumes()
}

// starts reports whether all networks of the pod exist.
func (m *model) starts(c *clientPod) bool {
	return !slices.ContainsFunc(append([]multus.Attachment{c.Network}, c.VolumeNetworks...), func(a multus.Attachment) bool {
		return !a.IsZero() && !slices.Contains(m.networks, a.Network)
	})
}

// install is an installer: while no volume is attached, it rewrites the template without per-volume
// networks, and Kubernetes rolls it out.
func (m *model) install() {
	for _, v := range m.volumes {
		if v.attachedTo != "" {
			return
		}
	}
	m.setTemplate(template{network: m.template.network, stripped: true})
	if m.paused {
		return
	}
	m.seen, m.seenRevision, m.seenGeneration = m.template, m.revision, m.generation
	for _, n := range m.nodes {
		m.newClient(n)
	}
}

// startWithout restarts a client, and another webhook removes its networks.
func (m *model) startWithout(node string) {
	if m.clients[node] == nil {
		return
	}
	m.newClient(node)
	c := m.clients[node]
	c.VolumeNetworks, c.stripped = nil, true
}

// recordVolumes writes the per-volume networks of servers or clients, and checks the gate.
func (m *model) recordVolumes(t *rapid.T, step Step) {
	if step.Action == RecordVolumeServers {
		for _, a := range difference(step.Networks, m.record.VolumeServers) {
			for _, n := range m.nodes {
				if c := m.clients[n]; c == nil || !c.Ready || !slices.Contains(c.VolumeNetworks, a) || !slices.Contains(c.VolumeNetworksReported, a) {
					t.Fatalf("invariant 1: servers go to %s before the client on %s", a, n)
				}
			}
		}
		m.record.VolumeServers, m.record.ServersSince = step.Networks, m.now
		return
	}
	for _, a := range difference(step.Networks, m.record.VolumeClients) {
		must.True(t, slices.Contains(m.networks, a.Network), "clients would request %s, which does not exist", a)
	}
	for _, a := range difference(m.record.VolumeClients, step.Networks) {
		for name, v := range m.volumes {
			switch {
			case v.server != nil && v.server.Network == a, v.service != nil && v.service.Recorded == a:
				t.Fatalf("invariant 1: clients leave %s, where %s is", a, name)
			case v.admitting != nil && v.admitting.placement.Network == a:
				t.Fatalf("invariant 1: clients leave %s, which the Service of %s will be on", a, name)
			}
		}
	}
	m.record.VolumeClients = step.Networks
}

// placed is the Service that Fairlead recreates.
func (m *model) placed(t *rapid.T, volume string, p multus.Placement) *rwx.Service {
	if p.Network.ForVolumes() {
		for _, c := range m.clients {
			must.True(t, slices.Contains(c.VolumeNetworks, p.Network),
				"invariant 1: Service of %s is recreated on %s, where the client on %s is not", volume, p.Network, c.Node)
		}
	}
	return serviceAt(volume, p)
}

// mustFollowRequests: in the end, every volume is on its requested network, and clients are on no other.
func (m *model) mustFollowRequests(t *rapid.T) {
	var requested []multus.Attachment
	for _, n := range append(m.requested(), m.class) {
		if !n.IsZero() && n != m.desired.Network && !m.unreachable() {
			requested = append(requested, multus.VolumeAttachment(n))
		}
	}
	requested = multus.InOrder(requested)
	must.True(t, reflect.DeepEqual(m.record.VolumeClients, requested) && reflect.DeepEqual(m.record.VolumeServers, requested) && !m.paused,
		"at the end record %+v, paused %v, requested %v", m.record, m.paused, requested)
	for _, c := range m.clients {
		must.True(t, reflect.DeepEqual(c.VolumeNetworks, requested), "at the end the client on %s is on %v, requested %v", c.Node, c.VolumeNetworks, requested)
	}
	for name, v := range m.volumes {
		want := multus.Placement{Network: m.desired}
		if n := v.request.Network; !n.IsZero() && n != m.desired.Network && !m.unreachable() {
			want.Network = multus.VolumeAttachment(n)
		}
		if !want.Network.IsZero() {
			want.Identity = v.request.Identity
		}
		must.True(t, v.service == nil || v.service.Placement(m.record.Clients) == want && v.service.Headless() != want.Network.IsZero(),
			"at the end the Service of %s is at %+v, want %+v", name, v.service, want)
	}
}

func (m *model) unreachable() bool { return m.mountsFromHost && m.desired.IsZero() }

func (m *model) requested() []multus.Network {
	var networks []multus.Network
	for _, v := range m.volumes {
		networks = append(networks, v.request.Network)
	}
	return networks
}
