package validators

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// ValidateVolumeNetwork judges annotations that ask for a network, addresses or a
// MAC for one volume. Nonsense is refused, and so is what another volume has
// already. The rest is accepted, attached volumes or not: what it waits for, or
// why it has no effect, is said in a warning.
//
// Objects: PersistentVolumeClaims, PersistentVolumes and StorageClasses whose annotations of that kind change.
// Source: longhorn#13695, harvester#11378, harvester#10047.
func ValidateVolumeNetwork(kind string, o VolumeAsking, facts VolumeNetworkFacts) Verdict {
	v := Verdict{Reason: ReasonValid}
	if v.checkSyntax(kind, o.Metadata.Annotations); len(v.Problems) > 0 {
		v.Reason = ReasonInvalidValue
		return v
	}
	request := storage.Resolve(facts.Claim, facts.Volume, facts.Class)
	v.checkVolumeNetworkExists(o.Metadata.Annotations[storage.VolumeNetworkAnnotation], facts)
	v.checkNobodyHas(o.Metadata.Annotations, request, facts)
	if len(v.Problems) > 0 {
		return v
	}
	if why := facts.noEffect(kind, o, request); why != "" {
		v.Reason = ReasonNoEffect
		v.Warnings = append(v.Warnings, "has no effect: "+why)
		return v
	}
	v.tellEffect(request, facts)
	return v
}

func annotation(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }

func (v *Verdict) checkSyntax(kind string, annotations map[string]string) {
	if text, ok := annotations[storage.VolumeNetworkAnnotation]; ok {
		if _, err := storage.ParseNetwork(text); err != nil {
			v.Problems = append(v.Problems, field.Invalid(annotation(storage.VolumeNetworkAnnotation), text, err.Error()+`, or "" for the network that all volumes are on`))
		}
	}
	for _, fixed := range []struct {
		key   string
		parse func(string) (string, error)
	}{{storage.VolumeAddressesAnnotation, storage.ParseAddresses}, {storage.VolumeMACAnnotation, storage.ParseMAC}} {
		text, ok := annotations[fixed.key]
		if !ok {
			continue
		}
		if kind == storage.ClassKind {
			v.Problems = append(v.Problems, field.Forbidden(annotation(fixed.key), "many volumes share a StorageClass, and an address is one volume's: set it on the PersistentVolumeClaim or the PersistentVolume"))
		} else if _, err := fixed.parse(text); err != nil {
			v.Problems = append(v.Problems, field.Invalid(annotation(fixed.key), text, err.Error()))
		}
	}
}

// checkVolumeNetworkExists refuses the name of a network that does not exist,
// where the configuration says so. Else tellEffect warns of it.
func (v *Verdict) checkVolumeNetworkExists(text string, facts VolumeNetworkFacts) {
	network, err := storage.ParseNetwork(text)
	if err != nil || facts.MissingPolicy != Refuse || !facts.isMissing(network) {
		return
	}
	v.Reason = ReasonNoSuchNetwork
	v.Problems = append(v.Problems, field.Invalid(annotation(storage.VolumeNetworkAnnotation), text, facts.missingMessage(network)))
}

func (f VolumeNetworkFacts) isMissing(n storage.Network) bool {
	return !n.IsZero() && f.NetworksKnown && !slices.Contains(f.Networks, n)
}

func (f VolumeNetworkFacts) missingMessage(n storage.Network) string {
	return fmt.Sprintf("there is no NetworkAttachmentDefinition %s%s; volumes stay where they are, and no pod restarts for it, until you create it", n, hint(f.Networks))
}

// checkNobodyHas refuses what another volume has on the same network.
func (v *Verdict) checkNobodyHas(annotations map[string]string, request storage.Request, facts VolumeNetworkFacts) {
	network := facts.networkOf(request)
	if network.IsZero() || !storage.AsksForNetwork(annotations) {
		return
	}
	for _, mine := range []struct {
		key      string
		identity storage.Identity
	}{
		{storage.VolumeAddressesAnnotation, storage.Identity{Addresses: request.Identity.Addresses}},
		{storage.VolumeMACAnnotation, storage.Identity{MAC: request.Identity.MAC}},
	} {
		for _, holder := range facts.Holders {
			if shared := mine.identity.Shared(holder.Identity); shared != "" && holder.Network == network {
				v.Reason = ReasonAddressTaken
				v.Problems = append(v.Problems, field.Invalid(annotation(mine.key), annotations[mine.key],
					fmt.Sprintf("%s on network %s is of %s already: choose another", shared, network, holder.Who)))
				break // it may be held twice, by an annotation and by a Service
			}
		}
	}
}

// networkOf is the network that the volume will be on in the end.
func (f VolumeNetworkFacts) networkOf(request storage.Request) storage.Network {
	if request.Network.IsZero() {
		return f.Rollout.Record.Servers.Network
	}
	return request.Network
}

// noEffect says why nothing will come of it, "" where something will.
func (f VolumeNetworkFacts) noEffect(kind string, o VolumeAsking, request storage.Request) string {
	annotations := o.Metadata.Annotations
	_, names := annotations[storage.VolumeNetworkAnnotation]
	self := storage.RequestSource{Kind: kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}.String()
	switch {
	case !storage.AsksForNetwork(annotations):
		return ""
	case f.Driver != "" && !slices.Contains(f.Drivers, f.Driver):
		return fmt.Sprintf("%s is of driver %s, and Fairlead works for %s", self, f.Driver, strings.Join(f.Drivers, ", "))
	case kind != storage.ClassKind && !slices.Contains(o.Spec.AccessModes, "ReadWriteMany"):
		return fmt.Sprintf("%s is not ReadWriteMany, so no server pod serves it over NFS", self)
	case slices.ContainsFunc(f.Concerned, func(v storage.Volume) bool { return !v.Shared }) && kind != storage.ClassKind:
		return "the volume is migratable, so no server pod serves it over NFS"
	case request.Problem != "":
		return request.Problem
	case names && request.Source != self && kind != storage.ClassKind:
		return fmt.Sprintf("%s names %q, and wins", request.Source, request.Network)
	case !request.Identity.IsZero() && f.networkOf(request).IsZero():
		return "RWX volumes are on the cluster network, where nothing can be fixed; name a network in " + storage.VolumeNetworkAnnotation
	}
	return ""
}

// tellEffect says what the change waits for. While the network does not exist,
// that is all: nothing restarts, and detaching the volume changes nothing.
func (v *Verdict) tellEffect(request storage.Request, facts VolumeNetworkFacts) {
	if facts.isMissing(request.Network) {
		v.Reason = ReasonPending
		v.Warnings = append(v.Warnings, facts.missingMessage(request.Network))
		return
	}
	place, ready := facts.Rollout.Record.Place(request)
	if !ready {
		v.Reason = ReasonPending
		v.Warnings = append(v.Warnings, rollout.JoiningWarning(request.Network, facts.Rollout))
	}
	var attached []catalog.Blocker
	for _, volume := range facts.Concerned {
		there := slices.ContainsFunc(facts.Services, func(s storage.Service) bool {
			return s.Volume == volume.Name && ready && s.Placement(facts.Rollout.Record.Clients) == place
		})
		if volume.Shared && volume.Attached && !there {
			attached = append(attached, catalog.Blocker{Kind: catalog.BlockedByVolume, Name: volume.Name, Nodes: volume.Nodes, Workloads: volume.Workloads})
		}
	}
	if len(attached) > 0 {
		v.Reason = ReasonPending
		v.Warnings = append(v.Warnings, "takes effect when the volume is detached: "+catalog.Detail(attached))
	}
}
