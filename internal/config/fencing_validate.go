package config

import (
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/storage"
)

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
		problems = append(problems, field.Invalid(path.Child("maxAge"), f.MaxAge.Duration.String(), fmt.Sprintf("must be at least %s: addresses are refreshed every %s", least, fence.RefreshEvery)))
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
		if len(c.ClientRanges) == 0 { // none would mean any address, even if the profile has ranges
			problems = append(problems, field.Required(at.Child("clientRanges"), "the ranges of the addresses of this Kubernetes cluster's clients in the storage cluster"))
		}
		problems = append(problems, validRanges(at.Child("clientRanges"), c.ClientRanges)...)
	}
	return problems
}

// validateSource refuses several sources: Fairlead can't know which of them is right.
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
