package config

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
)

// Fencing of nodes that are lost while they hold volumes. Default: no fencing.
type Fencing struct {
	// Profiles of storage systems whose volumes are protected, each once. Default: none.
	Profiles []FencingProfile `json:"profiles,omitempty"`
	// MaxAge of recorded addresses when the node is lost, at least 10m. An older record is refused (StaleLedger).
	// Default 15m.
	MaxAge metav1.Duration `json:"maxAge,omitzero"`
	// Returning says when a fenced node is unfenced after its return.
	Returning Returning `json:"returning,omitempty"`
	// GiveUp unfences machines whose Node was deleted, without an operator. Default never.
	GiveUp GiveUp `json:"giveUp,omitzero"`
	// Tainting of lost nodes by Fairlead. Default off.
	Tainting Tainting `json:"tainting,omitempty"`
	// CephClients is the cross-check with Ceph's own list of clients.
	CephClients CephClients `json:"cephClients,omitempty"`
}

// FencingProfile is one storage system whose clients are fenced.
type FencingProfile struct {
	// Name of a built-in profile: rook-ceph, for the drivers rbd.csi.ceph.com and cephfs.csi.ceph.com, also with a
	// prefix.
	Name string `json:"name"`
	// Namespace of the storage system and its plugin pods. Default rook-ceph.
	Namespace string `json:"namespace,omitempty"`
	// Mode: fence, guard (hold the volumes of lost nodes; an operator fences and releases them) or off (hold and
	// fence nothing; see docs/fencing-setup.md#switch-it-off). Default fence.
	Mode Switch `json:"mode,omitempty"`
	// Addresses is the source of the addresses to fence: csi-addons (CSIAddonsNodes) or node (the Node's internal
	// addresses; only if Ceph's clients have no other and the plugin pods are on the host network). Not with
	// network. Default csi-addons.
	Addresses Addresses `json:"addresses,omitempty"`
	// Network of the client pods, <namespace>/<NetworkAttachmentDefinition>: the addresses to fence are those that
	// Multus reports there. Default: none.
	Network string `json:"network,omitempty"`
	// ClientRanges are the CIDR ranges of this Kubernetes cluster's storage clients. No address outside is fenced.
	// Set them if several Kubernetes clusters use one storage system. Default: any address.
	ClientRanges []string `json:"clientRanges,omitempty"`
	// Clusters are storage clusters with ranges that differ from ClientRanges. Default: none.
	Clusters []FencingCluster `json:"clusters,omitempty"`
}

// FencingCluster is one of several storage clusters that a profile's drivers use.
type FencingCluster struct {
	// ClusterID of the storage cluster's volumes, each once.
	ClusterID string `json:"clusterID"`
	// ClientRanges, at least one, replace the profile's ranges for the storage cluster.
	ClientRanges []string `json:"clientRanges"`
}

// Addresses is a source of addresses.
type Addresses string

// Values of FencingProfile.Addresses.
const (
	AddressesCSIAddons Addresses = "csi-addons"
	AddressesNode      Addresses = "node"
)

// Returning says when a fenced node is unfenced.
type Returning struct {
	// Automatic: unfence a node once it has rebooted and is Ready, without waiting for the removal of its taint.
	// Default false.
	Automatic bool `json:"automatic,omitempty"`
	// ReadyFor is how long the node must be Ready before. Default 1m.
	ReadyFor metav1.Duration `json:"readyFor,omitzero"`
}

// GiveUp unfences fenced machines whose Node was deleted, as by autoscalers, once Kubernetes shows nothing on them.
// If such a machine still runs, it may write to volumes in use elsewhere, and destroy data. Use GiveUp only if the
// provider guarantees that the machine is off by then.
type GiveUp struct {
	// After is the time since the loss of a fenced machine after which it is unfenced, if its Node was deleted and
	// nothing is left on it. The time begins again when the controller restarts. Use it only if the provider ends
	// deleted machines sooner; else volumes may have two writers. Default never.
	After metav1.Duration `json:"after,omitzero"`
}

// Tainting sets the out-of-service taint on lost nodes, which starts their fencing.
type Tainting struct {
	// Mode: off, dryRun (only report what Fairlead would do) or on. See docs/fencing-setup.md.
	// Default off.
	Mode Switch `json:"mode,omitempty"`
	// NotReadyFor is how long a node must be silent before Fairlead taints it. Default 5m.
	NotReadyFor metav1.Duration `json:"notReadyFor,omitzero"`
	// NodeSelector selects nodes, as in kubectl -l. Default: all but control-plane nodes.
	NodeSelector string `json:"nodeSelector,omitempty"`
	// MaxNodes is how many nodes may have Fairlead's taint at a time. Default 1.
	MaxNodes int `json:"maxNodes,omitempty"`
	// MaxPercent of a zone's nodes may be not Ready or tainted, with the node in question. If more are, no node of
	// the zone is tainted. Default 34.
	MaxPercent int `json:"maxPercent,omitempty"`
	// StormNodes: if more nodes than this, and more than StormPercent of all, are lost within StormWindow, no node
	// is tainted meanwhile. Default 2.
	StormNodes int `json:"stormNodes,omitempty"`
	// StormPercent of all nodes. Default 20.
	StormPercent int `json:"stormPercent,omitempty"`
	// StormWindow is the period in which losses count as one storm. Default 5m.
	StormWindow metav1.Duration `json:"stormWindow,omitzero"`
	// MaxStaleness: if the latest heartbeat of any node is older, Fairlead itself is cut off, and no node is
	// tainted. Default 1m.
	MaxStaleness metav1.Duration `json:"maxStaleness,omitzero"`
	// ForceDetach names CSI drivers, or plugins such as kubernetes.io/gce-pd, that Fairlead does not fence and whose
	// volumes do not keep a node from being tainted. Safe only if their storage cuts off the former node: see
	// docs/fencing-setup.md#automatic-taints. Default: none.
	ForceDetach []string `json:"forceDetach,omitempty"`
}

// Switches that only fencing has.
const (
	Fence  Switch = "fence"
	DryRun Switch = "dryRun"
)

// On reports whether fencing runs. A profile with mode off counts: it may have
// fences in effect, which are removed when their nodes return.
func (f Fencing) On() bool { return len(f.Profiles) > 0 }

// Holds reports whether a profile fences or guards, so that volumes of lost nodes are held.
func (f Fencing) Holds() bool {
	return slices.ContainsFunc(f.Profiles, func(p FencingProfile) bool { return p.Mode != Off })
}

// Profile that fences or guards the volumes of a driver.
func (f Fencing) Profile(driver string) (FencingProfile, bool) {
	for _, p := range f.Profiles {
		if p.Mode != Off && p.Storage().Serves(driver) {
			return p, true
		}
	}
	return FencingProfile{}, false
}

// Protects reports whether a profile fences or guards the volumes of a driver.
func (f Fencing) Protects(driver string) bool {
	_, yes := f.Profile(driver)
	return yes
}

func (f *Fencing) setDefaults() {
	or(&f.MaxAge.Duration, fence.DefaultMaxAge)
	or(&f.Returning.ReadyFor.Duration, fence.DefaultReadyFor)
	or(&f.Tainting.Mode, Off)
	or(&f.Tainting.NotReadyFor.Duration, taint.DefaultNotReadyFor)
	or(&f.Tainting.MaxNodes, taint.DefaultMaxNodes)
	or(&f.Tainting.MaxPercent, taint.DefaultMaxShare)
	or(&f.Tainting.StormNodes, taint.DefaultStormNodes)
	or(&f.Tainting.StormPercent, taint.DefaultStormShare)
	or(&f.Tainting.StormWindow.Duration, taint.DefaultStormWindow)
	or(&f.Tainting.MaxStaleness.Duration, taint.DefaultMaxStaleness)
	for i := range f.Profiles {
		p := &f.Profiles[i]
		if builtIn, ok := FencedStorage(p.Name); ok {
			or(&p.Namespace, builtIn.Namespace)
		}
		or(&p.Mode, Fence)
	}
	f.CephClients.setDefaults(f.Profiles)
}

// FencedStorage finds a built-in profile of fencing by name.
func FencedStorage(name string) (profiles.Profile, bool) {
	i := slices.IndexFunc(profiles.All(), func(s profiles.Profile) bool { return s.Name == name })
	if i < 0 {
		return profiles.Profile{}, false
	}
	return profiles.All()[i], true
}

// Storage returns the built-in profile, in the configured namespace.
func (p FencingProfile) Storage() profiles.Profile {
	s, _ := FencedStorage(p.Name)
	s.Namespace = p.Namespace
	return s
}

// Source of the addresses to fence.
func (p FencingProfile) Source() string {
	switch {
	case p.Network != "":
		return fence.SourceMultus
	case p.Addresses == AddressesNode:
		return fence.SourceNode
	}
	return fence.SourceCSIAddonsNode
}

// Ranges are the parsed ClientRanges.
func (p FencingProfile) Ranges() []netip.Prefix { return parseRanges(p.ClientRanges) }

// ClusterRanges are the parsed ranges of Clusters, by clusterID.
func (p FencingProfile) ClusterRanges() map[string][]netip.Prefix {
	var ranges map[string][]netip.Prefix
	for _, c := range p.Clusters {
		if ranges == nil {
			ranges = map[string][]netip.Prefix{}
		}
		ranges[c.ClusterID] = parseRanges(c.ClientRanges)
	}
	return ranges
}

func parseRanges(texts []string) []netip.Prefix {
	var ranges []netip.Prefix
	for _, text := range texts {
		if prefix, err := netip.ParsePrefix(text); err == nil { // validated before
			ranges = append(ranges, prefix.Masked())
		}
	}
	return ranges
}

// Policy of all profiles.
func (f Fencing) Policy() fence.Policy {
	return fence.Policy{
		MaxAge: f.MaxAge.Duration, ReadyFor: f.Returning.ReadyFor.Duration, Automatic: f.Returning.Automatic,
		GiveUpAfter: f.GiveUp.After.Duration,
		Storages: func(driver string) (fence.StoragePolicy, bool) {
			p, protected := f.Profile(driver)
			if !protected {
				return fence.StoragePolicy{}, false
			}
			return fence.StoragePolicy{Mode: fence.Mode(p.Mode), Profile: p.Name, Source: p.Source(), ClientRanges: p.Ranges(), ClusterRanges: p.ClusterRanges()}, true
		},
	}
}
