package rollout

import (
	"fmt"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Record is the durable record of the two halves.
type Record struct {
	// Unknown: there is no record. Components stay as the storage system creates them.
	Unknown bool
	// Problem says why the stored record can't be read; the record is then unknown, and nothing is rolled out.
	Problem string
	// MountsInClients: by the settings, mounts may be in the network namespaces of clients, whether or
	// not clients are on a network.
	MountsInClients bool
	// Clients is the network of client pods.
	Clients multus.Attachment
	// Servers is the network of new Services and server pods.
	Servers multus.Attachment
	// ServersSince is when Servers or VolumeServers was last changed.
	ServersSince time.Time
	// VolumeClients are the per-volume networks of client pods, sorted.
	VolumeClients []multus.Attachment
	// VolumeServers are those that new Services and server pods may use, sorted.
	VolumeServers []multus.Attachment
	// Replacing is the Service that was deleted, or is about to be, to be recreated; "" is none.
	Replacing string
	// Refused writes are not tried now.
	Refused []Refusal
}

// DefaultSettle is how long after a change of Record.Servers an object may be stored that was admitted
// with the old value: the API server limits a request with its webhooks to 60 s (--request-timeout).
const DefaultSettle = 65 * time.Second

// Rollout is the input of a decision about the next step.
type Rollout struct {
	// Desired network, from SharedVolumeNetwork.
	Desired multus.Attachment
	// Invalid is why Desired is not known: a value is malformed.
	Invalid error
	Record  Record
	Now     time.Time
	Policy

	DaemonSet DaemonSet
	Clients   []rwx.Client
	Volumes   []rwx.Volume
	Services  []rwx.Service
	Servers   []rwx.Server
	// Restarted counts the restarts of clients for an address that Multus has not reported, by node.
	Restarted map[string]int
	// Runs has the nodes of workload pods, for NodeOrder: the storage system names the pods of a volume without their nodes. A pod
	// that it lacks may be on any node.
	Runs map[string]string

	// MountsFromHost, of longhorn.Names: without a default network, clients reach no per-volume network.
	MountsFromHost bool
	// ClassNetworks are the networks of StorageClasses.
	ClassNetworks []multus.Network
	// Networks that exist, false if CNI can't read their config; nil is unknown. Without Multus there are none.
	Networks map[multus.Network]bool
	// Configs of the networks, for Doubt.
	Configs map[multus.Network]string
	// Unlisted is why Networks could not be listed, or "".
	Unlisted string

	// index of the facts during one decision; see indexed.
	index *rolloutIndex
}

// Policy is what the configuration says about roll-outs.
type Policy struct {
	// Settle is the time for pending admissions; see DefaultSettle.
	Settle time.Duration
	// Gate of the default network; the zero Gate is GateCluster.
	Gate NetworkGate
	// Windows in which restarts may begin.
	Windows Windows
}

// NetworkGate says when clients may begin to move to another default network.
type NetworkGate string

const (
	// GateCluster opens when no RWX volume is attached in the cluster. Source: proposal "Storage
	// Network For RWX Volume".
	GateCluster NetworkGate = "cluster"
	// GateNode is always open: each client moves when no RWX volume is attached on its node. Servers
	// join last and leave first, since a client on the network reaches servers that are not.
	GateNode NetworkGate = "node"
)

// exists reports whether pods can start on a network: it exists, and CNI can read its config; true if unknown.
func (r Rollout) exists(n multus.Network) bool {
	return r.Networks == nil || n.IsZero() || r.Networks[n]
}

// Doubt says why pods on a network may get no address of their own; "" if nothing is known against it.
func (r Rollout) Doubt(n multus.Network) string {
	config, there := r.Configs[n]
	if !there || !r.exists(n) {
		return ""
	}
	servers := 0
	for _, v := range r.Volumes {
		if v.Shared {
			servers++
		}
	}
	if why := multus.Doubt(config, max(len(r.Clients), r.DaemonSet.Wanted)+servers); why != "" {
		return fmt.Sprintf("NetworkAttachmentDefinition %s: %s", n, why)
	}
	return ""
}

// DaemonSet of the client pods.
type DaemonSet struct {
	Name  string
	Found bool
	// Version is the resourceVersion that was read.
	Version string
	// Network of its template on Longhorn's interfaces: the first of Networks.
	Network multus.Attachment
	// Networks are all networks of its template on these interfaces.
	Networks []multus.Attachment
	// VolumeNetworks of its template, sorted.
	VolumeNetworks []multus.Attachment
	// Unreadable: the template's networks annotation can't be read.
	Unreadable  bool
	HostNetwork bool
	OptOut      bool
	// Paused: Fairlead has set the update strategy to OnDelete, and restarts pods itself.
	Paused bool
	// Observed: the DaemonSet controller has seen the newest template.
	Observed bool
	// Revision of the template, as in the label of its pods; "" if no pod shows it. A template that is changed back has its
	// former revision.
	Revision string
	// Wanted is the desired number of client pods.
	Wanted int
	// MaxUnavailable client pods at any time.
	MaxUnavailable int
}

// IsOn reports whether the template requests the attachment.
func (d DaemonSet) IsOn(a multus.Attachment) bool {
	return rwx.IsOn(d.Network, d.Networks, a)
}

// rolloutIndex maps volume names to objects, so that the cost of a decision is linear in volumes.
type rolloutIndex struct {
	volumes  map[string]*rwx.Volume // the first of a name
	attached map[string]*rwx.Volume
	services map[string][]*rwx.Service
	served   map[string]bool
}

// indexed adds an index for one decision. The index does not follow changes of the facts.
func (r Rollout) indexed() Rollout {
	x := &rolloutIndex{
		volumes: make(map[string]*rwx.Volume, len(r.Volumes)), attached: make(map[string]*rwx.Volume, len(r.Volumes)),
		services: make(map[string][]*rwx.Service, len(r.Services)), served: make(map[string]bool, len(r.Servers)),
	}
	for i := range r.Volumes {
		v := &r.Volumes[i]
		if _, there := x.volumes[v.Name]; !there {
			x.volumes[v.Name] = v
		}
		if _, there := x.attached[v.Name]; !there && v.Attached {
			x.attached[v.Name] = v
		}
	}
	for i := range r.Services {
		s := &r.Services[i]
		x.services[s.Volume] = append(x.services[s.Volume], s)
	}
	for _, s := range r.Servers {
		x.served[s.Volume] = true
	}
	r.index = x
	return r
}

// lookup returns the index of the decision, or a temporary one.
func (r Rollout) lookup() *rolloutIndex {
	if r.index == nil {
		r = r.indexed()
	}
	return r.index
}

// usedBy adds to a blocker who uses its volume, and has to stop, if the volume is attached.
func (x *rolloutIndex) usedBy(volume string, b catalog.Blocker) catalog.Blocker {
	if v, attached := x.attached[volume]; attached {
		b.Workloads, b.Owners = v.Workloads, v.Owners
		b.Message += fmt.Sprintf(": stop the workloads of volume %s", volume)
	}
	return b
}

// Adopt returns the first record of a cluster. Clients are on the networks of their template, and
// servers follow as in Observe. A wrong guess delays servers, but harms no mount.
func Adopt(d DaemonSet, clients []rwx.Client) Record {
	if !d.Found || d.Unreadable {
		return Record{}
	}
	record := Observe(Rollout{DaemonSet: d, Clients: clients})
	record.VolumeClients = d.VolumeNetworks
	return record
}

// Observe returns the record of a cluster whose storage system rolls out by itself: servers may follow
// once every client is on the network.
func Observe(r Rollout) Record {
	seen := Record{Clients: r.DaemonSet.Network, ServersSince: r.Now}
	if r.DaemonSet.IsOn(r.Desired) { // the template may have two networks
		seen.Clients = r.Desired
	}
	r.Record = seen
	if r.DaemonSet.Found && r.DaemonSet.Observed && len(r.outdated()) == 0 && len(r.unready(seen.Clients)) == 0 {
		seen.Servers = seen.Clients
	}
	return seen
}
