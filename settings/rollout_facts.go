package settings

import (
	"time"

	"github.com/fairlead-io/fairlead/storage"
)

// Record is the durable record of the two halves.
type Record struct {
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
	// Settle is the time that admissions on their way are given; see DefaultSettle.
	Settle time.Duration

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
	// Networks that exist; needed only where NewNetworks has something to look up.
	Networks []storage.Network

	// index of the above while one decision is made; see indexed.
	index *rolloutIndex
}

// DaemonSet is the one of the client pods.
type DaemonSet struct {
	Name  string
	Found bool
	// Network that its template asks for on the profile's interfaces.
	Network storage.Attachment
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
