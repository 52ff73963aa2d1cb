package validators

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// NetworkDefinition is the view of a NetworkAttachmentDefinition.
type NetworkDefinition struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Config string `json:"config"`
	} `json:"spec"`
}

// NetworkFacts say who uses networks, read live.
type NetworkFacts struct {
	Values  catalog.Values
	Rollout rollout.Rollout
	// Requests of volumes, by their names.
	Requests map[string]rwx.Request
	// Classes that name networks, by their names.
	Classes map[string]multus.Network
	Policy  settings.Strictness
}

// ValidateNetwork warns of the change or deletion of a NetworkAttachmentDefinition that is in use, and says what uses the
// network. With policy Refuse, the change is refused. The config is nil if the network is deleted.
//
// Objects: NetworkAttachmentDefinitions whose config changes or that are deleted.
func ValidateNetwork(network multus.Network, config *string, facts NetworkFacts) Verdict {
	uses := facts.uses(network)
	if len(uses) == 0 {
		return Verdict{Reason: ReasonValid}
	}
	consequence := "pods keep the old configuration until they restart"
	if config == nil {
		consequence = "pods that request the network do not start until it is created again"
	} else if !multus.IsCNI(*config) {
		consequence = "the config is no CNI configuration, so pods that request the network do not start until it is corrected"
	}
	if config != nil {
		facts.Rollout.Configs, facts.Rollout.Networks = map[multus.Network]string{network: *config}, nil
		if doubt := facts.Rollout.Doubt(network); doubt != "" {
			consequence += ". " + doubt
		}
	}
	message := fmt.Sprintf("network %s is in use by Longhorn: %s; %s", network, strings.Join(uses, ", "), consequence)
	if facts.Policy == settings.Refuse {
		return refusal(ReasonInUse, field.Forbidden(field.NewPath("spec", "config"), message+". Choose another network first"))
	}
	return Verdict{Reason: ReasonInUse, Warnings: []string{message}}
}

func (f NetworkFacts) uses(network multus.Network) []string {
	var uses []string
	for _, name := range []catalog.Name{catalog.StorageNetwork, catalog.EndpointNetworkForRWX} {
		if named, err := multus.ParseNetwork(f.Values[name].Text); err == nil && named == network {
			uses = append(uses, "setting "+string(name))
		}
	}
	isOn := func(a multus.Attachment) bool { return a.Network == network }
	clients := 0
	for _, c := range f.Rollout.Clients {
		if isOn(c.Network) || slices.ContainsFunc(c.Networks, isOn) || slices.ContainsFunc(c.VolumeNetworks, isOn) {
			clients++
		}
	}
	if clients > 0 {
		uses = append(uses, catalog.Count(clients, "CSI plugin pod"))
	}
	volumes := map[string]bool{}
	for _, s := range f.Rollout.Services {
		if s.Network(f.Rollout.Record.Clients).Network == network {
			volumes[s.Volume] = true
		}
	}
	for _, s := range f.Rollout.Servers {
		if isOn(s.Network) || slices.ContainsFunc(s.Networks, isOn) {
			volumes[s.Volume] = true
		}
	}
	for volume, request := range f.Requests {
		if request.Network == network {
			volumes[volume] = true
		}
	}
	for _, class := range slices.Sorted(maps.Keys(f.Classes)) {
		if f.Classes[class] == network {
			uses = append(uses, "StorageClass "+class)
		}
	}
	if len(volumes) > 0 {
		uses = append(uses, catalog.Count(len(volumes), catalog.RWXVolume)+" ("+catalog.FirstOf(slices.Sorted(maps.Keys(volumes)))+")")
	}
	return uses
}
