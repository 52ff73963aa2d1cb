// Package profiles describes the storage systems whose clients Fairlead can fence.
package profiles

import (
	"slices"
	"strings"
)

// Profile is how one storage system looks in a cluster.
type Profile struct {
	// Name of the profile, as in the configuration.
	Name string
	// Namespace of the storage system.
	Namespace string
	// DriverSuffixes of the storage system's drivers, which are named after their namespace.
	// A driver's name is a suffix, or ends in "." and a suffix.
	DriverSuffixes []string
	// ClientLabels select, for a driver's suffix, the pods that mount its volumes on nodes.
	ClientLabels map[string][]map[string]string
	// ServerLabels select the pods that serve the storage. Their addresses are never fenced.
	ServerLabels []map[string]string
}

// RookCeph is the profile of Ceph's RBD and CephFS drivers, as Rook deploys them.
// Sources of the names: rook/rook, pkg/operator/ceph/csi/spec.go for the plugins, and the labels that
// the operator puts on daemons. The operator of ceph-csi names plugin pods after the driver.
func RookCeph() Profile { return rookCeph }

var rookCeph = Profile{
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
}

// All lists the built-in profiles by name.
func All() []Profile { return []Profile{RookCeph()} }

// Serves reports whether a CSI driver is one of the storage system's.
func (p Profile) Serves(driver string) bool { return p.suffix(driver) != "" }

func (p Profile) suffix(driver string) string {
	i := slices.IndexFunc(p.DriverSuffixes, func(suffix string) bool { return driver == suffix || strings.HasSuffix(driver, "."+suffix) })
	if i < 0 {
		return ""
	}
	return p.DriverSuffixes[i]
}

// ClientPods returns alternative sets of labels that select the client pods of a driver.
func (p Profile) ClientPods(driver string) []map[string]string {
	return append(slices.Clone(p.ClientLabels[p.suffix(driver)]), map[string]string{"app": driver + "-nodeplugin"})
}
