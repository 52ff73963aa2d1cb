package config

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// Fencing says what becomes of nodes that are lost with volumes. Nothing, by default.
type Fencing struct {
	// Profiles of storage systems whose volumes are protected. Default: none.
	Profiles []FencingProfile `json:"profiles,omitempty"`
	// MaxAge of a node's recorded addresses when it is lost. Default 15m.
	MaxAge metav1.Duration `json:"maxAge,omitzero"`
	// Returning says when a node that was fenced is let in again.
	Returning Returning `json:"returning,omitempty"`
	// GiveUp machines whose Node was deleted, without an operator. Default never.
	GiveUp GiveUp `json:"giveUp,omitzero"`
	// Tainting of lost nodes by Fairlead itself. Default off.
	Tainting Tainting `json:"tainting,omitempty"`
	// CephClients: whether Ceph itself is asked. Default off.
	CephClients CephClients `json:"cephClients,omitempty"`
}

// FencingProfile is one storage system whose clients are fenced.
type FencingProfile struct {
	// Name of a built-in profile: rook-ceph.
	Name string `json:"name"`
	// Namespace of the storage system. Default: the profile's own.
	Namespace string `json:"namespace,omitempty"`
	// Mode: fence, guard (hold the volumes, fence nobody) or off. Default fence.
	Mode Switch `json:"mode,omitempty"`
	// Addresses is where the addresses that clients are fenced by come from, and nothing else is
	// believed: csi-addons (what CSIAddonsNodes report for a NetworkFenceClass) or node (the Node's
	// internal addresses). Network names another source. Default csi-addons.
	Addresses Addresses `json:"addresses,omitempty"`
	// Network that client pods are on: <namespace>/<name> of a NetworkAttachmentDefinition. Their
	// addresses on it, as Multus reports them, are then the addresses that clients are fenced by.
	Network string `json:"network,omitempty"`
	// ClientRanges that this cluster's clients have their storage addresses in.
	// Give them where several clusters use one storage system: nothing outside is
	// fenced. Default: any.
	ClientRanges []string `json:"clientRanges,omitempty"`
	// Clusters of the storage system that are not like the others. Default: none.
	Clusters []FencingCluster `json:"clusters,omitempty"`
	// Watchers and Runner are refused: see CephClients.
	Watchers json.RawMessage `json:"watchers,omitempty"`
	Runner   json.RawMessage `json:"runner,omitempty"`
}

// FencingCluster is one storage cluster, where a profile's drivers use several.
type FencingCluster struct {
	// ClusterID of its volumes.
	ClusterID string `json:"clusterID"`
	// ClientRanges take the place of the profile's for this storage cluster.
	ClientRanges []string `json:"clientRanges"`
}

// Addresses is a source of addresses.
type Addresses string

// Sources of addresses that are named here.
const (
	AddressesCSIAddons Addresses = "csi-addons"
	AddressesNode      Addresses = "node"
)

// Returning of a node that was fenced.
type Returning struct {
	// Automatic: let it in when it has booted anew and is Ready, without waiting
	// for its taint to be taken away. Default false.
	Automatic bool `json:"automatic,omitempty"`
	// ReadyFor is how long it must be Ready first. Default 1m.
	ReadyFor metav1.Duration `json:"readyFor,omitzero"`
}

// GiveUp unfences machines whose Node was deleted, as autoscalers and spot instances leave them, once they are
// fenced and Kubernetes shows nothing on them any more. A machine that still runs, unseen, may then write to volumes that are
// in use elsewhere, and to the files on them: data is lost. Use it only where the provider guarantees that the machine is off by then.
type GiveUp struct {
	// AddressTaken: when a Ready node, with another system UUID, has an address of the machine. Safe only where the provider
	// gives no address to a second machine while the first one runs. Default false.
	AddressTaken bool `json:"addressTaken,omitempty"`
	// After the machine was lost. Safe only where the provider ends a deleted machine within that time. Default never.
	After metav1.Duration `json:"after,omitzero"`
}

// Tainting gives lost nodes the out-of-service taint, which begins their fencing.
type Tainting struct {
	// Mode: off, dryRun (say what would be done) or on. Default off.
	Mode Switch `json:"mode,omitempty"`
	// NotReadyFor is how long a node must not be heard of. Default 5m.
	NotReadyFor metav1.Duration `json:"notReadyFor,omitzero"`
	// NodeSelector chooses the nodes, as in kubectl -l. Default: all but control-plane nodes.
	NodeSelector string `json:"nodeSelector,omitempty"`
	// MaxNodes that Fairlead has tainted at a time. Default 1.
	MaxNodes int `json:"maxNodes,omitempty"`
	// MaxPercent of a zone's nodes that may be lost; if more are, none is tainted there. Default 34.
	MaxPercent int `json:"maxPercent,omitempty"`
	// StormNodes and StormPercent, of all nodes: more than the greater of the two, lost
	// within StormWindow of each other, are a storm, and none is tainted. Default 2 and 20.
	StormNodes   int `json:"stormNodes,omitempty"`
	StormPercent int `json:"stormPercent,omitempty"`
	// StormWindow default 5m.
	StormWindow metav1.Duration `json:"stormWindow,omitzero"`
	// MaxStaleness: how long ago the last of all nodes may have been heard of. Default 1m.
	MaxStaleness metav1.Duration `json:"maxStaleness,omitzero"`
	// ForceDetach names drivers that Fairlead does not fence, and whose volumes Kubernetes
	// may take by force from a tainted node all the same. That is safe only where the
	// storage itself lets a volume be attached to no more than one node. Default: none.
	ForceDetach []string `json:"forceDetach,omitempty"`
}

// Switches of fencing alone, beside Guard, On and Off.
const (
	Fence  Switch = "fence"
	DryRun Switch = "dryRun"
)

// On tells whether there is anything to look after: a profile that is off may
// have fences that stand, which are taken back when their nodes return.
func (f Fencing) On() bool { return len(f.Profiles) > 0 }

func (f *Fencing) setDefaults() {
	orDuration(&f.MaxAge, fence.DefaultMaxAge)
	orDuration(&f.Returning.ReadyFor, fence.DefaultReadyFor)
	or(&f.Tainting.Mode, Off)
	orDuration(&f.Tainting.NotReadyFor, taint.DefaultNotReadyFor)
	if f.Tainting.MaxNodes == 0 {
		f.Tainting.MaxNodes = taint.DefaultMaxNodes
	}
	if f.Tainting.MaxPercent == 0 {
		f.Tainting.MaxPercent = taint.DefaultMaxShare
	}
	if f.Tainting.StormNodes == 0 {
		f.Tainting.StormNodes = taint.DefaultStormNodes
	}
	if f.Tainting.StormPercent == 0 {
		f.Tainting.StormPercent = taint.DefaultStormShare
	}
	orDuration(&f.Tainting.StormWindow, taint.DefaultStormWindow)
	orDuration(&f.Tainting.MaxStaleness, taint.DefaultMaxStaleness)
	for i := range f.Profiles {
		p := &f.Profiles[i]
		if builtIn, ok := FencedStorage(p.Name); ok {
			or(&p.Namespace, builtIn.Namespace)
		}
		or(&p.Mode, Fence)
	}
	f.CephClients.setDefaults(f.Profiles)
}

func orDuration(target *metav1.Duration, value time.Duration) {
	if target.Duration == 0 {
		target.Duration = value
	}
}

// FencedStorage finds a built-in profile of fencing by name.
func FencedStorage(name string) (profiles.Profile, bool) {
	i := slices.IndexFunc(profiles.All(), func(s profiles.Profile) bool { return s.Name == name })
	if i < 0 {
		return profiles.Profile{}, false
	}
	return profiles.All()[i], true
}

// Storage returns the built-in profile as this configuration places it.
func (p FencingProfile) Storage() profiles.Profile {
	s, _ := FencedStorage(p.Name)
	s.Namespace = p.Namespace
	return s
}

// Source of the addresses that clients are fenced by.
func (p FencingProfile) Source() string {
	switch {
	case p.Network != "":
		return fence.SourceMultus
	case p.Addresses == AddressesNode:
		return fence.SourceNode
	}
	return fence.SourceCSIAddonsNode
}

// Ranges that ClientRanges name.
func (p FencingProfile) Ranges() []netip.Prefix { return parseRanges(p.ClientRanges) }

// ClusterRanges that Clusters name, by clusterID.
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
		GiveUp: fence.GiveUp{AddressTaken: f.GiveUp.AddressTaken, After: f.GiveUp.After.Duration},
		Storages: func(driver string) (fence.StoragePolicy, bool) {
			for _, p := range f.Profiles {
				if p.Mode != Off && p.Storage().Serves(driver) {
					return fence.StoragePolicy{Mode: fence.Mode(p.Mode), Profile: p.Name, Source: p.Source(), ClientRanges: p.Ranges(), ClusterRanges: p.ClusterRanges()}, true
				}
			}
			return fence.StoragePolicy{}, false
		},
	}
}

func (f Fencing) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	positive := func(path *field.Path, d metav1.Duration) {
		if d.Duration < 0 {
			problems = append(problems, field.Invalid(path, d.Duration.String(), "must not be negative"))
		}
	}
	positive(path.Child("maxAge"), f.MaxAge)
	positive(path.Child("returning", "readyFor"), f.Returning.ReadyFor)
	positive(path.Child("giveUp", "after"), f.GiveUp.After)
	if least := 2 * fence.RefreshEvery; f.MaxAge.Duration > 0 && f.MaxAge.Duration < least {
		problems = append(problems, field.Invalid(path.Child("maxAge"), f.MaxAge.Duration.String(), fmt.Sprintf("must be at least %s: addresses are looked at anew every %s", least, fence.RefreshEvery)))
	}
	t := path.Child("tainting")
	positive(t.Child("notReadyFor"), f.Tainting.NotReadyFor)
	positive(t.Child("stormWindow"), f.Tainting.StormWindow)
	positive(t.Child("maxStaleness"), f.Tainting.MaxStaleness)
	problems = append(problems, f.CephClients.validate(path.Child("cephClients"))...)
	problems = append(problems, f.Tainting.validateGuards(t)...)
	problems = append(problems, oneOf(t.Child("mode"), f.Tainting.Mode, Off, DryRun, On)...)
	if f.Tainting.MaxNodes < 0 {
		problems = append(problems, field.Invalid(t.Child("maxNodes"), f.Tainting.MaxNodes, "must not be negative"))
	}
	if f.Tainting.MaxPercent < 0 || f.Tainting.MaxPercent > 100 {
		problems = append(problems, field.Invalid(t.Child("maxPercent"), f.Tainting.MaxPercent, "must be from 1 to 100"))
	}
	if _, err := labels.Parse(f.Tainting.NodeSelector); err != nil {
		problems = append(problems, field.Invalid(t.Child("nodeSelector"), f.Tainting.NodeSelector, err.Error()))
	}
	seen := map[string]bool{}
	for i, p := range f.Profiles {
		problems = append(problems, p.validate(path.Child("profiles").Index(i))...)
		if seen[p.Name] {
			problems = append(problems, field.Duplicate(path.Child("profiles").Index(i).Child("name"), p.Name))
		}
		seen[p.Name] = true
	}
	return problems
}

func (p FencingProfile) validate(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if _, ok := FencedStorage(p.Name); !ok {
		var names []string
		for _, s := range profiles.All() {
			names = append(names, s.Name)
		}
		problems = append(problems, field.NotSupported(path.Child("name"), p.Name, names))
	}
	for _, message := range validation.IsDNS1123Label(p.Namespace) {
		problems = append(problems, field.Invalid(path.Child("namespace"), p.Namespace, message))
	}
	problems = append(problems, oneOf(path.Child("mode"), p.Mode, Fence, Guard, Off)...)
	problems = append(problems, p.refuseRemoved(path)...)
	problems = append(problems, p.validateSource(path)...)
	if p.Network != "" {
		if _, err := storage.ParseNetwork(p.Network); err != nil {
			problems = append(problems, field.Invalid(path.Child("network"), p.Network, err.Error()))
		}
	}
	problems = append(problems, validRanges(path.Child("clientRanges"), p.ClientRanges)...)
	seen := map[string]bool{}
	for i, c := range p.Clusters {
		at := path.Child("clusters").Index(i)
		switch {
		case c.ClusterID == "":
			problems = append(problems, field.Required(at.Child("clusterID"), "the clusterID of the storage cluster's volumes"))
		case seen[c.ClusterID]:
			problems = append(problems, field.Duplicate(at.Child("clusterID"), c.ClusterID))
		}
		seen[c.ClusterID] = true
		if len(c.ClientRanges) == 0 { // it would mean any, where the profile may say otherwise
			problems = append(problems, field.Required(at.Child("clientRanges"), "the ranges that this cluster's clients have their addresses in there"))
		}
		problems = append(problems, validRanges(at.Child("clientRanges"), c.ClientRanges)...)
	}
	return problems
}

// validateSource refuses several sources: which of them is right, Fairlead can't know.
func (p FencingProfile) validateSource(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	at := path.Child("addresses")
	if p.Addresses != "" && p.Addresses != AddressesCSIAddons && p.Addresses != AddressesNode {
		problems = append(problems, field.Invalid(at, p.Addresses, "must be csi-addons or node; for a Multus network, write network: <namespace>/<name> instead"))
	}
	if p.Addresses != "" && p.Network != "" {
		problems = append(problems, field.Invalid(at, p.Addresses, "the addresses come from network "+p.Network+": remove addresses, or remove network"))
	}
	return problems
}

func validRanges(path *field.Path, texts []string) field.ErrorList {
	var problems field.ErrorList
	for i, text := range texts {
		if _, err := netip.ParsePrefix(text); err != nil {
			problems = append(problems, field.Invalid(path.Index(i), text, "must be a range in CIDR form, like 192.168.20.0/24"))
		}
	}
	return problems
}
