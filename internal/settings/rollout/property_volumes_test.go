package rollout

import (
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// The part of the model that is about networks of single volumes.

var (
	// The first two are those that all volumes may be on; the first always exists.
	existing = []storage.Network{networkA.Network, networkB.Network, {Namespace: "team-x", Name: "nfs"}, {Namespace: "team-y", Name: "nfs"}}
	// requestable are what volumes ask for: nothing, or one of those.
	requestable = append([]storage.Network{{}}, existing...)
)

func genRequest(t *rapid.T) storage.Request {
	r := storage.Request{Network: rapid.SampledFrom(requestable).Draw(t, "network asked for"), Source: "StorageClass x"}
	if rapid.IntRange(0, 2).Draw(t, "fixed") == 0 {
		r.Identity.Addresses = "192.168.0.10/24"
	}
	return r
}

// asks tells whether the pod asks for the network; what the installer took away counts as asked.
func (c *clientPod) asks(a storage.Attachment) bool {
	return c.Network == a || slices.Contains(c.VolumeNetworks, a) || c.stripped && a.ForVolumes()
}

// starts tells whether Multus finds every network that the pod asks for.
func (m *model) starts(c *clientPod) bool {
	return !slices.ContainsFunc(append([]storage.Attachment{c.Network}, c.VolumeNetworks...), func(a storage.Attachment) bool {
		return !a.IsZero() && !slices.Contains(m.networks, a.Network)
	})
}

// install is what an installer does that knows nothing of volumes' networks:
// while none is attached it writes the template anew, and Kubernetes rolls it out.
func (m *model) install() {
	for _, v := range m.volumes {
		if v.attachedTo != "" {
			return
		}
	}
	m.revision++
	m.template.volumes, m.template.stripped = nil, true
	if m.paused {
		return
	}
	m.seen, m.seenRevision = m.template, m.revision
	for _, n := range m.nodes {
		m.newClient(n)
	}
}

// comeUpWithout is a client that crashed and came up past a webhook of somebody
// else that took the networks away.
func (m *model) comeUpWithout(node string) {
	if m.clients[node] == nil {
		return
	}
	m.newClient(node)
	c := m.clients[node]
	c.VolumeNetworks, c.stripped = nil, true
}

// recordVolumes writes one half, and holds the gates of both.
func (m *model) recordVolumes(t *rapid.T, step Step) {
	if step.Action == RecordVolumeServers {
		for _, a := range difference(step.Networks, m.record.VolumeServers) {
			for _, n := range m.nodes {
				if c := m.clients[n]; c == nil || !c.Ready || !slices.Contains(c.VolumeNetworks, a) || !slices.Contains(c.VolumeNetworksReported, a) {
					t.Fatalf("invariant 1: servers go to %s before the client on %s is there", a, n)
				}
			}
		}
		m.record.VolumeServers, m.record.ServersSince = step.Networks, m.now
		return
	}
	for _, a := range difference(step.Networks, m.record.VolumeClients) {
		if !slices.Contains(m.networks, a.Network) {
			t.Fatalf("clients would ask for %s, which does not exist", a)
		}
	}
	for _, a := range difference(m.record.VolumeClients, step.Networks) {
		for name, v := range m.volumes {
			switch {
			case v.server != nil && v.server.Network == a, v.service != nil && v.service.Recorded == a:
				t.Fatalf("invariant 1: clients leave %s, where %s is", a, name)
			case v.admitting != nil && v.admitting.placement.Network == a:
				t.Fatalf("invariant 1: clients leave %s, where the Service of %s is on its way to", a, name)
			}
		}
	}
	m.record.VolumeClients = step.Networks
}

// placed is the Service that Fairlead makes anew.
func (m *model) placed(t *rapid.T, volume string, p storage.Placement) *storage.Service {
	if p.Network.ForVolumes() {
		for _, c := range m.clients {
			if !slices.Contains(c.VolumeNetworks, p.Network) {
				t.Fatalf("invariant 1: Service of %s is made anew on %s, where the client on %s is not", volume, p.Network, c.Node)
			}
		}
	}
	return serviceAt(volume, p)
}

// mustBeWhereVolumesAsk wants, at the end, every volume where it asks to be, and
// no client anywhere else.
func (m *model) mustBeWhereVolumesAsk(t *rapid.T) {
	var asked []storage.Attachment
	for _, n := range append(m.requests(), m.class) {
		if !n.IsZero() && n != m.desired.Network && !m.unreachable() {
			asked = append(asked, storage.VolumeAttachment(n))
		}
	}
	asked = storage.InOrder(asked)
	if !reflect.DeepEqual(m.record.VolumeClients, asked) || !reflect.DeepEqual(m.record.VolumeServers, asked) || m.paused {
		t.Fatalf("at the end record %+v, paused %v, asked for %v", m.record, m.paused, asked)
	}
	for _, c := range m.clients {
		if !reflect.DeepEqual(c.VolumeNetworks, asked) {
			t.Fatalf("at the end the client on %s is on %v, asked for %v", c.Node, c.VolumeNetworks, asked)
		}
	}
	for name, v := range m.volumes {
		want := storage.Placement{Network: m.desired}
		if n := v.request.Network; !n.IsZero() && n != m.desired.Network && !m.unreachable() {
			want.Network = storage.VolumeAttachment(n)
		}
		if !want.Network.IsZero() {
			want.Identity = v.request.Identity
		}
		if v.service != nil && (v.service.Placement(m.record.Clients) != want || v.service.Headless() == want.Network.IsZero()) {
			t.Fatalf("at the end the Service of %s is at %+v, want %+v", name, *v.service, want)
		}
	}
}

func (m *model) unreachable() bool { return m.mountsFromHost && m.desired.IsZero() }

func (m *model) requests() []storage.Network {
	var networks []storage.Network
	for _, v := range m.volumes {
		networks = append(networks, v.request.Network)
	}
	return networks
}
