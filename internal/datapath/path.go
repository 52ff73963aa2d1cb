// Package datapath follows the traffic of a shared volume from the nodes that mount the volume to the
// server, and finds the hops that disagree. The rules are those of admission and of the controllers.
package datapath

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Facts about the data paths of volumes.
type Facts struct {
	Names   longhorn.Names
	Rollout rollout.Rollout
	// Published are the addresses in Fairlead's EndpointSlices, by Service.
	Published map[string][]netip.Addr
	// Endpoints are the NFS URLs that the storage system gives its clients, by volume.
	Endpoints map[string]string
	// Dead are workloads with a dead mount that are not restarted.
	Dead []rwx.DeadMount
	// Place is where clients mount by the storage system's values; "" if that is not known.
	Place rwx.MountPlace
	// Failed has the volumes whose server has failed, by the storage system.
	Failed        map[string]bool
	ClusterDomain string
	// Idle: no controller of Fairlead leads, so nothing is repaired.
	Idle bool
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
	// Workload: a pod that has lost its mount. Other workloads are no hop.
	Workload  Kind = "workload"
	Client    Kind = "client"
	Endpoint  Kind = "endpoint"
	Service   Kind = "service"
	Addresses Kind = "addresses"
	Server    Kind = "server"
)

// Hop is one object between a node and the server of a volume.
type Hop struct {
	Kind Kind `json:"kind"`
	// Name of the object; empty if there is none. Node of a pod.
	Name string `json:"name"`
	Node string `json:"node,omitempty"`
	// Network that the hop is on; empty is the cluster network. Meaningless for an endpoint.
	Network   string   `json:"network"`
	Addresses []string `json:"addresses"`
	State     State    `json:"state"`
	// Message says what is wrong or waited for, and Command what to type next.
	Message string `json:"message"`
	Command string `json:"command"`
}

// Path leads from the nodes to the server of one shared volume. `fairlead volumes -o json` prints it: fields are added,
// never renamed or removed; lists are never null. Networks are <namespace>/<name>@<interface>; empty is the cluster network.
type Path struct {
	Volume   string `json:"volume"`
	Attached bool   `json:"attached"`
	// Nodes that the volume is attached to, and Workloads, namespace/name of pods, that use it.
	Nodes     []string `json:"nodes"`
	Workloads []string `json:"workloads"`
	// Network of the volume now, by its Service; absent before the first attachment.
	Network *string `json:"network,omitempty"`
	// Wanted network, by the settings and the volume's annotations.
	Wanted string `json:"wanted"`
	// Server addresses that clients mount.
	Server []string `json:"server"`
	State  State    `json:"state"`
	// WaitsFor says what keeps the volume from the wanted network; empty if it is on it.
	WaitsFor string `json:"waitsFor"`
	Hops     []Hop  `json:"hops"`
}

// Reason of the state: what the volume waits for, else the first hop that disagrees; empty if all is well.
func (p Path) Reason() string {
	if p.WaitsFor != "" {
		return p.WaitsFor
	}
	for _, h := range p.Hops {
		if h.State == p.State && h.Message != "" {
			return h.Message
		}
	}
	return ""
}

// Follow returns the paths of all shared volumes, by name.
func Follow(f Facts) []Path {
	x := newIndex(f)
	paths := []Path{}
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
	services map[string]rwx.Service
	servers  map[string][]rwx.Server
	clients  map[string][]rwx.Client
	// outOfLine are messages by kind and name of the object.
	outOfLine map[[2]string]string
	step      rollout.Step
}

func newIndex(f Facts) index {
	x := index{
		Facts: f, services: map[string]rwx.Service{}, servers: map[string][]rwx.Server{}, clients: map[string][]rwx.Client{},
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

func (x index) path(v rwx.Volume) Path {
	wanted, network := x.wanted(v), multus.Attachment{}
	p := Path{
		Volume: v.Name, Attached: v.Attached, Nodes: append([]string{}, v.Nodes...), Workloads: append([]string{}, v.Workloads...),
		Wanted: wanted.String(), Server: []string{}, State: OK, Hops: []Hop{},
	}
	service, created := x.services[v.Name]
	if created {
		network = service.Network(x.Rollout.Record.Clients)
		text := network.String()
		p.Network = &text
	}
	if v.Attached {
		p.Hops = append(p.Hops, x.deadMounts(v)...)
		for _, node := range v.Nodes {
			h := x.client(node, network, wanted, v.Name)
			if created && h.State == OK && rollout.MountsMiss(&service, x.Rollout.Record.Clients, x.Place) {
				h = h.waiting(fmt.Sprintf("Longhorn mounts over the node's network by now: pods that start on %s can't mount volume %s until all its workloads are stopped", node, v.Name),
					cmp.Or(catalog.ScaleDown(v.Owners), x.showClients(node)))
			}
			p.Hops = append(p.Hops, h)
		}
	}
	switch {
	case created:
		p.Hops = append(p.Hops, x.endpoint(service), x.service(service, v, wanted))
		if !network.IsZero() {
			p.Hops = append(p.Hops, x.addresses(service, v))
		}
		p.Hops = append(p.Hops, x.serverHops(v)...)
	case v.Attached && !v.Since.IsZero(): // else the storage system alone has attached the volume, and serves it to no pod
		p.Hops = append(p.Hops, x.noService(v))
	}
	for _, h := range p.Hops {
		p.State = Worse(p.State, h.State)
		if h.Kind == Addresses || h.Kind == Service {
			p.Server = append(p.Server, h.Addresses...)
		}
	}
	if created && network != wanted {
		p.State = Worse(p.State, Waiting)
		p.WaitsFor = cmp.Or(x.outOfLine[[2]string{string(catalog.BlockedByService), service.Name}], x.waitsFor(network, wanted))
	}
	return p
}

// wanted is the network by the settings and the request of the volume. Without a default network, Longhorn's volumes
// stay on the cluster network.
func (x index) wanted(v rwx.Volume) multus.Attachment {
	if n := v.Request.Network; !n.IsZero() && n != x.Rollout.Desired.Network && !x.Rollout.NoneReachable() {
		return multus.VolumeAttachment(n)
	}
	return x.Rollout.Desired
}

// waitsFor is what the roll-out to the wanted network waits for. Per-volume networks have a roll-out of their own.
func (x index) waitsFor(network, wanted multus.Attachment) string {
	if network.ForVolumes() || wanted.ForVolumes() {
		return cmp.Or(x.step.Volumes.Message, x.step.Message)
	}
	return x.step.Message
}

// Severity orders states, the worst last.
func (s State) Severity() int { return slices.Index([]State{OK, Waiting, Wrong}, s) }

// Worse of two states.
func Worse(a, b State) State {
	if b.Severity() > a.Severity() {
		return b
	}
	return a
}
