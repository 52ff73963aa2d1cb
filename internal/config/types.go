// Package config is Fairlead's component configuration: what Fairlead works for, and its
// duties there. The configuration is a versioned file with strict parsing. Without a
// file, the defaults are in effect.
package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
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
	// ClusterDomain is the DNS domain of the cluster, for NFS endpoints. Default cluster.local.
	ClusterDomain string `json:"clusterDomain,omitempty"`
	// Longhorn is what Fairlead does for Longhorn; longhorn: {} takes all defaults. Default: all defaults, unless fencing,
	// nfs.drivers or ondat is set.
	Longhorn *Longhorn `json:"longhorn,omitempty"`
	// Fencing of lost nodes. See docs/fencing.md.
	Fencing Fencing `json:"fencing,omitempty"`
	// NFS configures NFS services. See docs/nfs.md.
	NFS NFS `json:"nfs,omitempty"`
	// Ondat publishes volumes of Ondat (StorageOS); ondat: {} takes all defaults. See docs/nfs-ondat.md. Default:
	// none.
	Ondat *Ondat `json:"ondat,omitempty"`
}

// Networks says how Fairlead treats changes of networks.
type Networks struct {
	// Missing: Warn or Refuse when a setting or a volume names a network that does not exist. Default Warn.
	Missing settings.Strictness `json:"missing,omitempty"`
	// InUse: Warn or Refuse when a network in use is changed or deleted. Default Warn.
	InUse settings.Strictness `json:"inUse,omitempty"`
	// Settle is how long clients stay on a network after new servers have left it: longer than the API server's
	// request timeout. Default 65s.
	Settle metav1.Duration `json:"settle,omitzero"`
	// Gate says when CSI plugin pods may change their network for RWX volumes: cluster (no RWX volume is attached
	// anywhere) or node (none is attached on the pod's node). See docs/rwx-network.md#a-busy-cluster. Default
	// cluster.
	Gate rollout.NetworkGate `json:"gate,omitempty"`
	// PerVolume lists the networks, <namespace>/<NetworkAttachmentDefinition>, that single volumes may request. See
	// docs/volume-networks.md. Default: none.
	PerVolume []string `json:"perVolume,omitempty"`
	// FixedAddresses are the addresses that PersistentVolumeClaims may ask for. PersistentVolumes may ask for any. See
	// docs/volume-networks.md. Default: none.
	FixedAddresses []FixedAddresses `json:"fixedAddresses,omitempty"`
}

// FixedAddresses are addresses on one network that claims may ask for.
type FixedAddresses struct {
	// Network, <namespace>/<NetworkAttachmentDefinition>. Default: the default network of RWX volumes.
	Network string `json:"network,omitempty"`
	// Namespaces of the claims. Default: all.
	Namespaces []string `json:"namespaces,omitempty"`
	// Ranges of addresses, such as 192.168.60.8/29.
	Ranges []string `json:"ranges,omitempty"`
	// MACPrefixes are the first octets of MAC addresses, such as 02:00:00:00:60.
	MACPrefixes []string `json:"macPrefixes,omitempty"`
}

// DefaultMaxPercent allows one restart of each workload when all mounts die
// together, as in an upgrade of the storage system. A second round is stopped.
const DefaultMaxPercent = 100

// Workloads limits restarts of workloads whose mounts died.
type Workloads struct {
	// MaxPercent of the workloads with shared volumes may be restarted within a minute. Above that, and above thirty
	// workloads, restarts pause. Default 100.
	MaxPercent int `json:"maxPercent,omitempty"`
}

// Longhorn is what Fairlead does for Longhorn.
type Longhorn struct {
	// Namespace of Longhorn. Default longhorn-system.
	Namespace string `json:"namespace,omitempty"`
	// Duties of Fairlead for Longhorn. See docs/reference/duties.md.
	Duties Duties `json:"duties,omitempty"`
	// Networks says how changes of networks are judged and rolled out.
	Networks Networks `json:"networks,omitempty"`
	// MaintenanceWindows are the times in which restarts of storage components may begin. See
	// docs/rwx-network.md#maintenance-windows. Default: any time.
	MaintenanceWindows []MaintenanceWindow `json:"maintenanceWindows,omitempty"`
	// Workloads limits restarts of workloads.
	Workloads Workloads `json:"workloads,omitempty"`

	// permitted are Networks.PerVolume and Networks.FixedAddresses.
	permitted rwx.Permitted
}

// Names are Longhorn's names, in the configured namespace.
func (l *Longhorn) Names() longhorn.Names {
	names := longhorn.DefaultNames()
	names.Namespace, names.VolumeNetworks = l.Namespace, l.permitted
	return names
}

// Duties are tasks that can be switched off where another controller does them.
type Duties struct {
	// Settings: apply (judge and roll out), guard (judge only) or off. Default apply.
	Settings Switch `json:"settings,omitempty"`
	// Pods: on (add networks to client and server pods) or off. Default on.
	Pods Switch `json:"pods,omitempty"`
	// Services: on (make Services of shared volumes headless) or off. Default on.
	Services Switch `json:"services,omitempty"`
	// Networks: on (name the users of a network that is changed or deleted) or off. Default on.
	Networks Switch `json:"networks,omitempty"`
	// VolumeNetworks: on (allow per-volume networks; needs settings: apply) or off.
	// Default on.
	VolumeNetworks Switch `json:"volumeNetworks,omitempty"`
	// Endpoints: on (publish the addresses of headless Services in EndpointSlices and a classic Endpoints object),
	// slices (EndpointSlices only) or off. Default on, or off if settings is off.
	Endpoints Switch `json:"endpoints,omitempty"`
	// Workloads: on (restart workload pods whose mount has died) or off. Default on,
	// or off if settings is off.
	Workloads Switch `json:"workloads,omitempty"`
	// Remount: on (restart workload pods when Longhorn requests a remount of their volume) or off (Longhorn restarts
	// them). Default off.
	Remount Switch `json:"remount,omitempty"`
}

// ServesVolumeNetworks reports whether volumes may have per-volume networks. The
// roll-out of the default network also rolls out per-volume networks.
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
		return nil // empty: the default
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

// MaintenanceWindow is a weekly period in which restarts may begin.
type MaintenanceWindow struct {
	// Days on which the window opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun. Default every day.
	Days []string `json:"days,omitempty"`
	// Start is the time of day at which the window opens, such as 22:00.
	Start string `json:"start"`
	// Length of the window, such as 4h: at least 1m, at most 168h (a week).
	Length metav1.Duration `json:"length"`
	// TimeZone of Start and Days in the IANA database, such as Europe/Berlin. Default UTC.
	TimeZone string `json:"timeZone,omitempty"`
}

// Policy returns the roll-out policy of a validated configuration.
func (l *Longhorn) Policy() rollout.Policy {
	p := rollout.Policy{Settle: l.Networks.Settle.Duration, Gate: l.Networks.Gate}
	for _, w := range l.MaintenanceWindows {
		p.Windows = append(p.Windows, w.window(&problems{}, nil))
	}
	return p
}

var weekdays = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

const week = 7 * 24 * time.Hour

func (w MaintenanceWindow) window(p *problems, path *field.Path) rollout.Window {
	window := rollout.Window{Length: w.Length.Duration}
	for i, day := range w.Days {
		n := slices.IndexFunc(weekdays, func(name string) bool { return strings.EqualFold(day, name) })
		p.unless(n >= 0, field.NotSupported(path.Child("days").Index(i), day, weekdays))
		window.Days = append(window.Days, time.Weekday(n))
	}
	start, err := time.Parse("15:04", w.Start)
	p.unless(err == nil, field.Invalid(path.Child("start"), w.Start, "must be a time of day, for example 22:00"))
	window.Start = time.Duration(start.Hour())*time.Hour + time.Duration(start.Minute())*time.Minute
	p.unless(time.Minute <= w.Length.Duration && w.Length.Duration <= week, field.Invalid(path.Child("length"), w.Length.Duration.String(), "must be from 1m to 168h"))
	if window.Location, err = time.LoadLocation(w.TimeZone); err != nil {
		p.invalid(path.Child("timeZone"), w.TimeZone, fmt.Sprintf("must be a name of the IANA time zone database, for example Europe/Berlin: %v", err))
	}
	return window
}
