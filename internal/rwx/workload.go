package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"slices"
	"time"
)

// Workload is a pod that uses volumes of Longhorn.
type Workload struct {
	Namespace, Name, UID string
	// Owner is the pod's controller.
	Owner Owner
	// OptOut keeps Fairlead off the pod.
	OptOut      bool
	Terminating bool
	// Created is when the API server made the pod, by its clock. All other times are by the node's.
	Created time.Time
	// Began is when the kubelet accepted the pod: its volumes were mounted later.
	Began time.Time
	// Mounted is the latest time of the mounts: the sandbox and containers come later.
	// Zero: not known, or the volumes may be mounted again soon.
	Mounted time.Time
	// Started: a container has run, so the volumes may still be mounted.
	Started bool
	// Restarted: a container has restarted. The node may have rebooted and mounted the
	// volumes again.
	Restarted bool
	// Starts are the known starts of containers, of this run and the last.
	Starts []time.Time
	Mounts []Mount
}

// Uses reports whether the workload uses the volume.
func (w Workload) Uses(volume string) bool {
	return slices.ContainsFunc(w.Mounts, func(m Mount) bool { return m.Volume == volume })
}

// Owner is the controller that recreates a pod.
type Owner struct {
	APIVersion, Kind, Name, UID string
}

// IsZero tells that the pod has no controller.
func (o Owner) IsZero() bool { return o == Owner{} }

// Mount is one volume of a workload.
type Mount struct {
	Volume string
	// Driver is the CSI driver of the volume, "" where it has none.
	Driver string
	// Shared: an NFS mount of the client. Neither RWO nor migratable.
	Shared, Migratable bool
	// Network of the volume; zero is the cluster network.
	Network multus.Attachment
	// ServerMove is how the server moved away from the address that the pod has mounted.
	ServerMove ServerMove
	// RemountRequested is when the storage system asked for a remount.
	RemountRequested time.Time
}

// MountPlace says in whose network namespace clients mount shared volumes.
type MountPlace string

// Places. The zero MountPlace is not known.
const (
	// InClient: in the client's, so that mounts die with the client.
	InClient MountPlace = "Client"
	// InHost: in the node's, where mounts outlive clients.
	InHost MountPlace = "Host"
	// InEither: in the client's, but a pod shares the mount that its node has of
	// the volume already, and that mount may be in the other place.
	InEither MountPlace = "ClientOrHost"
)

// Mounting says where clients mount, and since when. Longhorn uses the values of
// its settings, applied or not, so the place changes with the values.
type Mounting struct {
	Place MountPlace
	// Since is when the place was first seen.
	Since time.Time
	// Before is the place before Since; "" is not known.
	Before MountPlace
	// BeforeSince is when Before was first seen. Zero: no other place was seen earlier.
	BeforeSince time.Time
}

// Next is the mounting after another look.
func (m Mounting) Next(place MountPlace, now time.Time) Mounting {
	if place == "" || place == m.Place {
		return m
	}
	next := Mounting{Place: place, Since: now, Before: m.Place}
	if m.Before != "" {
		next.BeforeSince = m.Since
	}
	return next
}

// effect of a new network namespace of the client on a mount.
type effect int

const (
	survives effect = iota
	dies
	mayDie
)

// effectOnClusterNetwork is the effect if the volume's server is on the cluster network. Client and node both reach the
// server, so only the place tells where the mount is. A change of the place is seen a moment late: only what was surely
// mounted in the client dies.
func (m Mounting) effectOnClusterNetwork(w Workload) effect {
	place := MountPlace("")
	switch {
	case m.after(w):
		place = m.Place
	case m.before(w) && !w.Began.Before(m.BeforeSince):
		place = m.Before
	}
	switch {
	case m.Place == "" || m.Place == InHost && m.Before == "":
		return survives // nothing was ever seen but the node's
	case place == InHost:
		return survives
	case place == InClient && m.Place == InClient && m.after(w):
		return dies
	}
	return mayDie
}

// effectOnNetwork is the effect if the volume's server is on a network of its own, which nodes seldom reach.
func (m Mounting) effectOnNetwork(w Workload) effect {
	if m.Place == InHost && m.Before != "" && !m.before(w) {
		return mayDie
	}
	return dies
}

// after reports whether the workload's mounts are certainly newer than the current place.
func (m Mounting) after(w Workload) bool { return !w.Began.IsZero() && !w.Began.Before(m.Since) }

// before reports whether it was surely mounted before. Times of pods are cut to the second.
func (m Mounting) before(w Workload) bool {
	return !w.Mounted.IsZero() && !w.Mounted.Add(time.Second).After(m.Since)
}
