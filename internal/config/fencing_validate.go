package config

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/multus"
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
	_, err := multus.ParseNetwork(profile.Network)
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
