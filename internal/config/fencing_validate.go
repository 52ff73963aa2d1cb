package config

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/storage"
)

func (f Fencing) validate(p *problems, path *field.Path) {
	least := 2 * fence.RefreshEvery
	p.unless(f.MaxAge.Duration <= 0 || f.MaxAge.Duration >= least, field.Invalid(path.Child("maxAge"), f.MaxAge.Duration.String(),
		fmt.Sprintf("must be at least %s: addresses are refreshed every %s", least, fence.RefreshEvery)))
	p.atLeast(path.Child("maxAge"), f.MaxAge, 0)
	p.atLeast(path.Child("returning", "readyFor"), f.Returning.ReadyFor, 0)
	p.atLeast(path.Child("giveUp", "after"), f.GiveUp.After, 0)
	f.CephClients.validate(p, path.Child("cephClients"))
	f.Tainting.validate(p, path.Child("tainting"))
	earlier := map[string]bool{}
	for i, profile := range f.Profiles {
		profile.validate(p, path.Child("profiles").Index(i))
		p.once(path.Child("profiles").Index(i).Child("name"), profile.Name, earlier)
	}
}

func (profile FencingProfile) validate(p *problems, path *field.Path) {
	var names []string
	for _, s := range profiles.All() {
		names = append(names, s.Name)
	}
	oneOf(p, path.Child("name"), profile.Name, names...)
	p.namespace(path.Child("namespace"), profile.Namespace)
	oneOf(p, path.Child("mode"), profile.Mode, Fence, Guard, Off)
	// With several sources, Fairlead can't know which of them is right.
	source := path.Child("addresses")
	p.unless(slices.Contains([]Addresses{"", AddressesCSIAddons, AddressesNode}, profile.Addresses),
		field.Invalid(source, profile.Addresses, "must be csi-addons or node; for a Multus network, write network: <namespace>/<name> instead"))
	p.unless(profile.Addresses == "" || profile.Network == "",
		field.Invalid(source, profile.Addresses, "the addresses come from network "+profile.Network+": remove addresses, or remove network"))
	_, err := storage.ParseNetwork(profile.Network)
	p.parsed(path.Child("network"), profile.Network, err)
	p.ranges(path.Child("clientRanges"), profile.ClientRanges)
	earlier := map[string]bool{}
	for i, c := range profile.Clusters {
		at := path.Child("clusters").Index(i)
		p.unless(c.ClusterID != "", field.Required(at.Child("clusterID"), "the clusterID of the storage cluster's volumes"))
		if c.ClusterID != "" {
			p.once(at.Child("clusterID"), c.ClusterID, earlier)
		}
		// None would mean any address, even if the profile has ranges.
		p.unless(len(c.ClientRanges) > 0, field.Required(at.Child("clientRanges"), "the ranges of the addresses of this Kubernetes cluster's clients in the storage cluster"))
		p.ranges(at.Child("clientRanges"), c.ClientRanges)
	}
}

func (p *problems) ranges(path *field.Path, texts []string) {
	for i, text := range texts {
		_, err := netip.ParsePrefix(text)
		p.unless(err == nil, field.Invalid(path.Index(i), text, "must be a range in CIDR form, like 192.168.20.0/24"))
	}
}

// Rules of automatic tainting.
func (t Tainting) Rules() taint.Rules {
	rules := taint.Rules{
		Mode: taint.Mode(t.Mode), NotReadyFor: t.NotReadyFor.Duration,
		MaxNodes: t.MaxNodes, MaxShare: t.MaxPercent,
		StormNodes: t.StormNodes, StormShare: t.StormPercent, StormWindow: t.StormWindow.Duration,
		MaxStaleness: t.MaxStaleness.Duration, ForceDetach: t.ForceDetach,
	}
	if t.NodeSelector != "" {
		if selector, err := labels.Parse(t.NodeSelector); err == nil { // validated before
			rules.NodeSelector = selector
		}
	}
	return rules
}

func (t Tainting) validate(p *problems, path *field.Path) {
	oneOf(p, path.Child("mode"), t.Mode, Off, DryRun, On)
	for _, d := range []struct {
		name  string
		value metav1.Duration
	}{{"notReadyFor", t.NotReadyFor}, {"stormWindow", t.StormWindow}, {"maxStaleness", t.MaxStaleness}} {
		p.atLeast(path.Child(d.name), d.value, 0)
	}
	p.number(path.Child("maxNodes"), t.MaxNodes, 0, math.MaxInt, "must not be negative")
	p.number(path.Child("stormNodes"), t.StormNodes, 0, math.MaxInt, "must not be negative")
	p.number(path.Child("maxPercent"), t.MaxPercent, 0, 100, "must be from 1 to 100") // 0 is the default
	p.number(path.Child("stormPercent"), t.StormPercent, 0, 100, "must be from 1 to 100")
	_, err := labels.Parse(t.NodeSelector)
	p.parsed(path.Child("nodeSelector"), t.NodeSelector, err)
	for i, driver := range t.ForceDetach {
		at := path.Child("forceDetach").Index(i)
		for _, message := range validation.IsQualifiedName(driver) {
			p.invalid(at, driver, "must be the name of a CSI driver, or a plugin like kubernetes.io/iscsi: "+message)
		}
		if i := slices.IndexFunc(profiles.All(), func(s profiles.Profile) bool { return s.Serves(driver) }); i >= 0 {
			p.invalid(at, driver, fmt.Sprintf("is a driver of %s, which lets two nodes write to one volume unless one is fenced", profiles.All()[i].Name))
		}
	}
}

// CephClients is the cross-check of recorded addresses against Ceph's own list of clients, before a node is fenced.
type CephClients struct {
	// Mode: off, or crossCheck: before a node is fenced, Ceph is asked who has its volumes open. See
	// docs/fencing-setup.md#ask-ceph. Default off.
	Mode Switch `json:"mode,omitempty"`
	// ClusterID of the volumes that are checked. Default: the namespace of profile rook-ceph.
	ClusterID string `json:"clusterID,omitempty"`
	// URL of fairlead ceph-clients, whose host is in its certificate. Default: its Service in fairlead-system.
	URL string `json:"url,omitempty"`
}

// CrossCheck is a mode of CephClients, beside Off.
const CrossCheck Switch = "crossCheck"

func (c *CephClients) setDefaults(profiles []FencingProfile) {
	if or(&c.Mode, Off); c.Mode == Off {
		return
	}
	or(&c.URL, "https://fairlead-ceph-clients.fairlead-system.svc:9445")
	if i := slices.IndexFunc(profiles, func(p FencingProfile) bool { return p.Name == "rook-ceph" }); i >= 0 {
		c.ClusterID = cmp.Or(c.ClusterID, profiles[i].Namespace)
	}
}

func (c CephClients) validate(p *problems, path *field.Path) {
	oneOf(p, path.Child("mode"), c.Mode, Off, CrossCheck)
	u, err := url.Parse(c.URL)
	p.unless(c.Mode == Off || err == nil && u.Scheme == "https" && u.Host != "", field.Invalid(path.Child("url"), c.URL, "must be https:// and a host"))
}
