package rollout

import (
	"time"

	"github.com/fairlead-io/fairlead/internal/storage"
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
	Clients storage.Attachment
	// Servers is the network of new Services and server pods.
	Servers storage.Attachment
	// ServersSince is when Servers or VolumeServers was last changed.
	ServersSince time.Time
	// VolumeClients are the per-volume networks of client pods, sorted.
	VolumeClients []storage.Attachment
	// VolumeServers are those that new Services and server pods may use, sorted.
	VolumeServers []storage.Attachment
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
	Desired storage.Attachment
	// Invalid is why Desired is not known: a value is malformed.
	Invalid error
	Record  Record
	Now     time.Time
	Policy

	DaemonSet DaemonSet
	Clients   []storage.Client
	Volumes   []storage.Volume
	Services  []storage.Service
	Servers   []storage.Server

	// MountsFromHost, of the profile: without a default network, clients reach no per-volume network.
	MountsFromHost bool
	// ClassNetworks are the networks of StorageClasses.
	ClassNetworks []storage.Network
	// Networks that exist; nil is unknown. Without Multus there are none.
	Networks map[storage.Network]bool
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

// exists reports whether a network exists; true if unknown.
func (r Rollout) exists(n storage.Network) bool {
	return r.Networks == nil || n.IsZero() || r.Networks[n]
}

// DaemonSet of the client pods.
type DaemonSet struct {
	Name  string
	Found bool
	// Network of its template on the profile's interfaces: the first of Networks.
	Network storage.Attachment
	// Networks are all networks of its template on these interfaces.
	Networks []storage.Attachment
	// VolumeNetworks of its template, sorted.
	VolumeNetworks []storage.Attachment
	// Unreadable: the template's networks annotation can't be read.
	Unreadable  bool
	HostNetwork bool
	OptOut      bool
	// Paused: Fairlead has set the update strategy to OnDelete, and restarts pods itself.
	Paused bool
	// Observed: the DaemonSet controller has seen the newest template.
	Observed bool
	// Revision of the template, as in the label of its pods.
	Revision string
	// Wanted is the desired number of client pods.
	Wanted int
	// MaxUnavailable client pods at any time.
	MaxUnavailable int
}

// IsOn reports whether the template requests the attachment.
func (d DaemonSet) IsOn(a storage.Attachment) bool {
	return storage.IsOn(d.Network, d.Networks, a)
}
