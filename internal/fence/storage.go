package fence

import (
	"slices"
	"strings"
	"time"
)

// Storage is how one storage system looks to whoever fences its clients.
type Storage struct {
	// Name of the profile, as in the configuration.
	Name string
	// Namespace of the storage system.
	Namespace string
	// DriverSuffixes: a driver is one of this system's if its name is a suffix,
	// or ends in "." and a suffix: drivers are named after their namespace.
	DriverSuffixes []string
	// ClientLabels select, for a driver's suffix, the pods that mount its volumes on nodes.
	ClientLabels map[string][]map[string]string
	// ServerLabels select the pods that serve the storage: their addresses are never fenced.
	ServerLabels []map[string]string
	// FormerSwitch is the ConfigMap key, in Namespace, by which the storage system's own fencing was
	// once switched off. It changes nothing here, and a leftover one is reported.
	FormerSwitch Switch
}

// Switch is a key of a ConfigMap; the value "false" switches off.
type Switch struct {
	ConfigMap, Key string
}

// Off tells whether the data of the ConfigMap switch off. Who is in a hurry may
// write False; a ConfigMap or key that is not there switches nothing.
func (s Switch) Off(data map[string]string) bool {
	return strings.EqualFold(strings.TrimSpace(data[s.Key]), "false")
}

// RookCeph is the profile of Ceph's RBD and CephFS drivers, as Rook deploys them.
// Names are those of rook/rook: pkg/operator/ceph/csi/spec.go for the plugins,
// and the labels that the operator puts on daemons. The operator of ceph-csi
// names plugin pods after the driver.
func RookCeph() Storage { return rookCeph }

var rookCeph = Storage{
	Name:           "rook-ceph",
	Namespace:      "rook-ceph",
	DriverSuffixes: []string{"rbd.csi.ceph.com", "cephfs.csi.ceph.com"},
	ClientLabels: map[string][]map[string]string{
		"rbd.csi.ceph.com":    {{"app": "csi-rbdplugin"}},
		"cephfs.csi.ceph.com": {{"app": "csi-cephfsplugin"}},
	},
	ServerLabels: []map[string]string{
		{"app": "rook-ceph-mon"}, {"app": "rook-ceph-osd"}, {"app": "rook-ceph-mgr"}, {"app": "rook-ceph-mds"},
	},
	FormerSwitch: Switch{ConfigMap: "rook-ceph-operator-config", Key: "ROOK_WATCH_FOR_NODE_FAILURE"},
}

// Storages lists the built-in profiles by name.
func Storages() []Storage { return []Storage{RookCeph()} }

// Serves tells whether a CSI driver is one of the storage system's.
func (s Storage) Serves(driver string) bool { return s.suffix(driver) != "" }

func (s Storage) suffix(driver string) string {
	i := slices.IndexFunc(s.DriverSuffixes, func(suffix string) bool { return driver == suffix || strings.HasSuffix(driver, "."+suffix) })
	if i < 0 {
		return ""
	}
	return s.DriverSuffixes[i]
}

// ClientPods returns the labels that select the client pods of a driver, each set for itself.
func (s Storage) ClientPods(driver string) []map[string]string {
	return append(slices.Clone(s.ClientLabels[s.suffix(driver)]), map[string]string{"app": driver + "-nodeplugin"})
}

// Mode of fencing for one storage system.
type Mode string

// Modes.
const (
	// ModeFence: keep the ledger, hold the volumes of lost nodes, and fence.
	ModeFence Mode = "fence"
	// ModeGuard: keep the ledger and hold the volumes; an operator lets them go.
	ModeGuard Mode = "guard"
	// ModeOff: nothing is held or fenced. What was asked for and is not confirmed is
	// taken back at once, and fences that stand when their node has booted anew.
	ModeOff Mode = "off"
)

// Defaults of a Policy.
const (
	// DefaultMaxAge of what the ledger says, when the node is lost.
	DefaultMaxAge = 15 * time.Minute
	// DefaultReadyFor is how long a node that has booted anew is watched before it is let in.
	DefaultReadyFor = time.Minute
)
