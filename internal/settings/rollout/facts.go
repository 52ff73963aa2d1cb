package rollout

import (
	"time"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// Record is the durable record of the two halves.
type Record struct {
	// Unknown: nothing is recorded yet. Components stay as the storage system builds them.
	Unknown bool
	// MountsInClients: mounts may be made in the network namespaces of clients, by
	// the settings' values, whether or not clients are on a network.
	MountsInClients bool
	// Clients is the network that client pods are built with.
	Clients storage.Attachment
	// Servers is the network that new Services and server pods are built with.
	Servers storage.Attachment
	// ServersSince is when Servers or VolumeServers was last changed.
	ServersSince time.Time
	// VolumeClients are the networks of single volumes that client pods are built
	// with beside Clients, in order.
	VolumeClients []storage.Attachment
	// VolumeServers are those of them that new Services and server pods may be on, in order.
	VolumeServers []storage.Attachment
}

// DefaultSettle is how long after a change of Record.Servers an admission that
// read the value before may still be on its way to the store: the API server
// gives a request, all webhooks included, 60 s (--request-timeout).
const DefaultSettle = 65 * time.Second

// Rollout are the facts that the next step of a roll-out follows from.
type Rollout struct {
	// Desired network, from SharedVolumeNetwork.
	Desired storage.Attachment
	Record  Record
	Now     time.Time
	Policy

	DaemonSet DaemonSet
	Clients   []storage.Client
	Volumes   []storage.Volume
	Services  []storage.Service
	Servers   []storage.Server

	// MountsFromHost, of the profile: without a network for all volumes, none can
	// be reached on its own.
	MountsFromHost bool
	// ClassNetworks are the networks that StorageClasses name.
	ClassNetworks []storage.Network
	// Networks that exist, as in Existing; looked up only where UsesNetworks says so.
	Networks map[storage.Network]bool

	// index of the above while one decision is made; see indexed.
	index *rolloutIndex
}

// Policy is what the configuration says about roll-outs.
type Policy struct {
	// Settle is the time that admissions on their way are given; see DefaultSettle.
	Settle time.Duration
	// Gate of the common network; the zero Gate is GateCluster.
	Gate NetworkGate
	// Windows in which restarts may begin.
	Windows Windows
}

// NetworkGate says when clients may begin to move to another common network.
type NetworkGate string

const (
	// GateCluster opens when no shared volume is attached anywhere. Source:
	// proposal "Storage Network For RWX Volume".
	GateCluster NetworkGate = "cluster"
	// GateNode opens at once: each client moves when no shared volume is attached
	// on its node. A client on the network reaches servers that are not, so servers
	// join last and leave first, volume by volume.
	GateNode NetworkGate = "node"
)

// exists tells whether a network exists; one that was not looked up counts as existing.
func (r Rollout) exists(n storage.Network) bool {
	return r.Networks == nil || n.IsZero() || r.Networks[n]
}

// DaemonSet is the one of the client pods.
type DaemonSet struct {
	Name  string
	Found bool
	// Network that its template asks for on the profile's interfaces: the first of Networks.
	Network storage.Attachment
	// Networks are all of them.
	Networks []storage.Attachment
	// VolumeNetworks that its template asks for, in order.
	VolumeNetworks []storage.Attachment
	// Unreadable: the template's networks annotation can't be read.
	Unreadable  bool
	HostNetwork bool
	OptOut      bool
	// Paused: Fairlead has set the update strategy to OnDelete, to restart pods itself.
	Paused bool
	// Observed: the DaemonSet controller has seen the newest template.
	Observed bool
	// Revision of the template, as the pods made from it carry it.
	Revision string
	// Wanted is the number of client pods there should be.
	Wanted int
	// MaxUnavailable client pods at any time.
	MaxUnavailable int
}

// IsOn tells whether the template asks for the attachment.
func (d DaemonSet) IsOn(a storage.Attachment) bool {
	return storage.IsOn(d.Network, d.Networks, a)
}

// NetworksThere is Existing.Networks of a list.
func NetworksThere(networks []storage.Network) map[storage.Network]bool {
	there := make(map[storage.Network]bool, len(networks))
	for _, n := range networks {
		there[n] = true
	}
	return there
}
