package datapath

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Facts of one profile.
type Facts struct {
	Profile storage.Profile
	Rollout rollout.Rollout
	// Published are the addresses in Fairlead's EndpointSlices, by Service.
	Published map[string][]netip.Addr
	// Endpoints are the NFS URLs that the storage system gives its clients, by volume.
	Endpoints map[string]string
	// Failed has the volumes whose server has failed, by the storage system.
	Failed        map[string]bool
	ClusterDomain string
}

// startLimit is how long a server may take to become Ready before its state is Wrong: time to attach
// the volume and to pull an image.
const startLimit = 2 * time.Minute

// State of a hop or of a path.
type State string

// States, the worst last.
const (
	// OK: the hop is as the record says.
	OK State = "ok"
	// Waiting: the hop is to change, and the change waits for something; or the server starts.
	Waiting State = "waiting"
	// Wrong: the hop disagrees with the others, and nothing is known that it waits for.
	Wrong State = "wrong"
)

// Kind of a hop.
type Kind string

// Kinds, in the order of the traffic.
const (
	Client    Kind = "client"
	Endpoint  Kind = "endpoint"
	Service   Kind = "service"
	Addresses Kind = "addresses"
	Server    Kind = "server"
)

// Hop is one object between a node and the server of a volume.
type Hop struct {
	Kind Kind
	// Name of the object; empty if there is none. Node of a pod.
	Name, Node string
	// Network that the hop is on; zero is the cluster network. Meaningless for an endpoint.
	Network   storage.Attachment
	Addresses []string
	State     State
	// Message says what is wrong or waited for, and Command what to type next.
	Message, Command string
}

// Path leads from the nodes to the server of one shared volume.
type Path struct {
	Volume   string
	Attached bool
	// Nodes that the volume is attached to, and Workloads, namespace/name of pods, that use it.
	Nodes, Workloads []string
	// Network of the volume now, by its Service; Wanted by the settings and the volume's annotations.
	Network, Wanted storage.Attachment
	// Created: the volume has a Service, so Network has a meaning.
	Created bool
	State   State
	// WaitsFor says what keeps the volume from the wanted network; empty if it is on it.
	WaitsFor string
	Hops     []Hop
}

// Follow returns the paths of all shared volumes, by name.
func Follow(f Facts) []Path {
	x := newIndex(f)
	var paths []Path
	for _, v := range f.Rollout.Volumes {
		if v.Shared {
			paths = append(paths, x.path(v))
		}
	}
	slices.SortFunc(paths, func(a, b Path) int { return cmp.Compare(a.Volume, b.Volume) })
	return paths
}

// index finds the facts of a volume without reading all of them again.
type index struct {
	Facts
	services map[string]storage.Service
	servers  map[string][]storage.Server
	clients  map[string][]storage.Client
	// outOfLine are messages by kind and name of the object.
	outOfLine map[[2]string]string
	step      rollout.Step
}

func newIndex(f Facts) index {
	x := index{
		Facts: f, services: map[string]storage.Service{}, servers: map[string][]storage.Server{}, clients: map[string][]storage.Client{},
		outOfLine: map[[2]string]string{},
	}
	for _, s := range f.Rollout.Services {
		x.services[s.Volume] = s
	}
	for _, s := range f.Rollout.Servers {
		x.servers[s.Volume] = append(x.servers[s.Volume], s)
	}
	for _, c := range f.Rollout.Clients {
		x.clients[c.Node] = append(x.clients[c.Node], c)
	}
	if !f.Rollout.Record.Unknown {
		x.step = rollout.Next(f.Rollout)
		for _, o := range rollout.FindOutOfLine(f.Rollout) {
			x.outOfLine[[2]string{string(o.Kind), o.Name}] = o.Message
		}
	}
	return x
}

func (x index) path(v storage.Volume) Path {
	p := Path{Volume: v.Name, Attached: v.Attached, Nodes: v.Nodes, Workloads: v.Workloads, Wanted: x.wanted(v), State: OK}
	service, created := x.services[v.Name]
	p.Created = created
	if created {
		p.Network = service.Network(x.Rollout.Record.Clients)
	}
	if v.Attached {
		for _, node := range v.Nodes {
			p.Hops = append(p.Hops, x.client(node, p.Network, p.Wanted, v.Name))
		}
	}
	if created {
		p.Hops = append(p.Hops, x.endpoint(service), x.service(service))
		if p.Network != (storage.Attachment{}) {
			p.Hops = append(p.Hops, x.addresses(service, v))
		}
	}
	switch {
	case created:
		p.Hops = append(p.Hops, x.serverHops(v)...)
	case v.Attached && !v.Since.IsZero(): // else the storage system alone has attached the volume, and serves it to no pod
		p.Hops = append(p.Hops, x.noService(v))
	}
	for _, h := range p.Hops {
		p.State = Worse(p.State, h.State)
	}
	if created && p.Network != p.Wanted {
		p.State = Worse(p.State, Waiting)
		p.WaitsFor = cmp.Or(x.outOfLine[[2]string{string(catalog.BlockedByService), service.Name}], x.step.Volumes.Message, x.step.Message)
	}
	return p
}

// wanted is the network by the settings and the request of the volume.
func (x index) wanted(v storage.Volume) storage.Attachment {
	if n := v.Request.Network; !n.IsZero() && n != x.Rollout.Desired.Network {
		return storage.VolumeAttachment(n)
	}
	return x.Rollout.Desired
}

// Worse of two states.
func Worse(a, b State) State {
	rank := map[State]int{OK: 0, Waiting: 1, Wrong: 2}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
