package storage

import (
	"slices"
	"time"
)

// Workload is a pod that uses volumes of a profile.
type Workload struct {
	Namespace, Name, UID string
	// Owner is the pod's controller.
	Owner Owner
	// OptOut keeps Fairlead off the pod.
	OptOut      bool
	Terminating bool
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
	Network Attachment
	// RemountRequested is when the storage system asked for a remount.
	RemountRequested time.Time
}
