// Package config is Fairlead's component configuration: which profiles it
// works for and what it does there. It is a file, versioned and read strictly;
// without a file the defaults hold.
package config

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// APIVersion and Kind that a configuration file must name.
const (
	APIVersion = "config.fairlead.io/v1alpha1"
	Kind       = "Configuration"
)

// Configuration of the webhook and the controller. Both read the same file.
type Configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// ClusterDomain is the DNS domain of the cluster. Default cluster.local.
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// Networks says how strict Fairlead is about NetworkAttachmentDefinitions.
	Networks Networks `json:"networks,omitempty"`
	// MaintenanceWindows are the times in which restarts of storage components may
	// begin. Without any they may begin at any time.
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`
	// Workloads says how many workloads may be restarted.
	Workloads Workloads `json:"workloads,omitempty"`
	// Profiles to work for. Default: longhorn, unless fencing, nfs.drivers or ondat is set.
	Profiles []Profile `json:"profiles,omitempty"`
	// Fencing of lost nodes. See docs/fencing.md.
	Fencing Fencing `json:"fencing,omitempty"`
	// NFS says how volumes of NFS services are served. See docs/nfs.md.
	NFS NFS `json:"nfs,omitempty"`
	// Ondat (StorageOS), whose shared volumes are published; ondat: {} takes all defaults. Default: none.
	Ondat *Ondat `json:"ondat,omitempty"`
}

// Strictness is Warn or Refuse.
type Strictness string

// Strictnesses.
const (
	Warn   Strictness = "Warn"
	Refuse Strictness = "Refuse"
)

// Networks says what becomes of questionable changes.
type Networks struct {
	// Missing: a setting names a network that does not exist. Default Warn.
	Missing Strictness `json:"missing,omitempty"`
	// InUse: a network that is in use is changed or deleted. Default Warn.
	InUse Strictness `json:"inUse,omitempty"`
	// Settle is how long clients stay on a network after new servers have left it,
	// for Services whose admission began before. Default 65s, which is longer than
	// the API server's request timeout.
	Settle metav1.Duration `json:"settle,omitzero"`
	// Gate that opens the way of CSI plugin pods to another network for RWX volumes:
	// cluster (when no RWX volume is attached anywhere) or node (each pod when none
	// is attached on its node; servers follow volume by volume). Default cluster.
	Gate rollout.NetworkGate `json:"gate,omitempty"`
}

// DefaultMaxPercent lets each workload be restarted once when all mounts die
// together, as at an upgrade of the storage system, and stops a second round.
const DefaultMaxPercent = 100

// Workloads says how many workloads may be restarted since their mount died.
type Workloads struct {
	// MaxPercent of the workloads with shared volumes may be restarted within a
	// minute, and thirty in any case. More pauses restarts. Default 100.
	MaxPercent int `json:"maxPercent,omitempty"`
}

// Profile is one storage system in the cluster.
type Profile struct {
	// Name of a built-in profile: longhorn.
	Name string `json:"name"`
	// Namespace of the storage system. Default: the profile's own.
	Namespace string `json:"namespace,omitempty"`
	// Duties that Fairlead has here. See docs/reference/duties.md.
	Duties Duties `json:"duties,omitempty"`
}

// Duties switch off what another controller does already.
type Duties struct {
	// Settings: apply (judge and roll out), guard (judge only) or off. Default apply.
	Settings Switch `json:"settings,omitempty"`
	// Pods: on (add networks to client and server pods) or off. Default on.
	Pods Switch `json:"pods,omitempty"`
	// Services: on (make Services of shared volumes headless, and endpoints follow) or off. Default on.
	Services Switch `json:"services,omitempty"`
	// Networks: on (tell who uses a network that is changed) or off. Default on.
	Networks Switch `json:"networks,omitempty"`
	// VolumeNetworks: on (volumes may have networks of their own) or off. Default on.
	// It needs settings: apply.
	VolumeNetworks Switch `json:"volumeNetworks,omitempty"`
	// Endpoints: on (publish the addresses of headless Services in EndpointSlices
	// and a classic Endpoints object), slices (in slices only) or off. Default on;
	// off where settings is off.
	Endpoints Switch `json:"endpoints,omitempty"`
	// Workloads: on (restart workload pods whose mount has died) or off. Default
	// on; off where settings is off.
	Workloads Switch `json:"workloads,omitempty"`
	// Remount: on (restart workload pods whose volume the storage system asks to
	// mount anew) or off. Default off, since Longhorn does it itself.
	Remount Switch `json:"remount,omitempty"`
}

// ServesVolumeNetworks tells whether volumes may have networks of their own: only
// who rolls out the network of all can roll out theirs.
func (d Duties) ServesVolumeNetworks() bool { return d.VolumeNetworks == On && d.Settings == Apply }

// Switch of a duty.
type Switch string

// Switches.
const (
	Apply  Switch = "apply"
	Guard  Switch = "guard"
	On     Switch = "on"
	Slices Switch = "slices"
	Off    Switch = "off"
)

// UnmarshalJSON also takes true and false, since YAML reads a bare on and off as those.
func (s *Switch) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil // left empty: the default
	}
	var on bool
	if json.Unmarshal(data, &on) == nil {
		*s = Off
		if on {
			*s = On
		}
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a switch is a word: %w", err)
	}
	*s = Switch(text)
	return nil
}
