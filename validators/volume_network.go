package validators

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// ValidateVolumeNetwork checks annotations that request a network, addresses or a MAC address for one volume. Malformed
// requests are refused, and so are addresses of another volume where an object is changed. Other requests are accepted, also while volumes are
// attached: a warning says what the request waits for, or why it has no effect.
//
// Objects: PersistentVolumeClaims, PersistentVolumes and StorageClasses whose annotations for volume networks change.
// Source: longhorn#13695, harvester#11378, harvester#10047.
func ValidateVolumeNetwork(kind string, o VolumeObject, facts VolumeNetworkFacts) Verdict {
	v := Verdict{Reason: ReasonValid}
	if v.checkSyntax(kind, o.Metadata.Annotations); len(v.Problems) > 0 {
		return v
	}
	request := rwx.Resolve(facts.Permitted, facts.Claim, facts.Volume, facts.Class)
	v.checkPermitted(o.Metadata.Annotations[rwx.VolumeNetworkAnnotation], facts)
	v.checkGranted(kind, o, request, facts)
	v.checkVolumeNetworkExists(o.Metadata.Annotations[rwx.VolumeNetworkAnnotation], facts)
	v.checkFree(o.Metadata.Annotations, request, facts)
	v.checkFits(o.Metadata.Annotations, request, facts)
	if len(v.Problems) > 0 {
		return v
	}
	if why := facts.noEffect(kind, o, request); why != "" {
		v.Reason = ReasonNoEffect
		v.warn("has no effect: %s", why)
		return v
	}
	v.warnOfEffect(request, facts)
	return v
}

func annotation(key string) *field.Path { return field.NewPath("metadata", "annotations").Key(key) }

func (v *Verdict) checkSyntax(kind string, annotations map[string]string) {
	if text, ok := annotations[rwx.VolumeNetworkAnnotation]; ok {
		if _, err := multus.ParseNetwork(text); err != nil {
			v.refuse(ReasonInvalidValue, field.Invalid(annotation(rwx.VolumeNetworkAnnotation), text, err.Error()+`, or "" for the default network of RWX volumes`))
		}
	}
	for _, fixed := range []struct {
		key   string
		parse func(string) (string, error)
	}{{rwx.VolumeAddressesAnnotation, multus.ParseAddresses}, {rwx.VolumeMACAnnotation, multus.ParseMAC}} {
		text, ok := annotations[fixed.key]
		if !ok {
			continue
		}
		if kind == rwx.ClassKind {
			v.refuse(ReasonInvalidValue, field.Forbidden(annotation(fixed.key), "a StorageClass is for many volumes, and an address is for one: set the annotation on the PersistentVolumeClaim or the PersistentVolume"))
		} else if _, err := fixed.parse(text); err != nil {
			v.refuse(ReasonInvalidValue, field.Invalid(annotation(fixed.key), text, err.Error()))
		}
	}
}

// checkPermitted refuses a network that the configuration does not list, unless the volume is of a driver that Fairlead
// does not serve.
func (v *Verdict) checkPermitted(text string, facts VolumeNetworkFacts) {
	network, err := multus.ParseNetwork(text)
	if err != nil || network.IsZero() || !facts.serves() || slices.Contains(facts.Permitted.Networks, network) {
		return
	}
	v.refuse(ReasonNetworkNotPermitted, field.Forbidden(annotation(rwx.VolumeNetworkAnnotation), network.String()+": "+rwx.NotPermitted))
}

// serves reports whether the volume may be of a driver that Fairlead serves.
func (f VolumeNetworkFacts) serves() bool { return f.Driver == "" || f.Driver == f.Names.Driver }

// checkGranted refuses addresses that the configuration does not give to the claim.
func (v *Verdict) checkGranted(kind string, o VolumeObject, request rwx.Request, facts VolumeNetworkFacts) {
	self := rwx.Asker{Kind: kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}.String()
	if request.NotGranted != "" && request.Source == self && facts.serves() {
		v.refuse(ReasonAddressNotGranted, field.Forbidden(annotation(request.NotGranted), request.Problem))
	}
}

// checkVolumeNetworkExists refuses a network that does not exist, with policy Refuse. With policy Warn, warnOfEffect warns.
func (v *Verdict) checkVolumeNetworkExists(text string, facts VolumeNetworkFacts) {
	network, err := multus.ParseNetwork(text)
	if err != nil || len(v.Problems) > 0 || facts.MissingPolicy != settings.Refuse || !facts.isMissing(network) {
		return
	}
	v.refuse(ReasonNoSuchNetwork, field.Invalid(annotation(rwx.VolumeNetworkAnnotation), text, facts.missingMessage(network)))
}

func (f VolumeNetworkFacts) isMissing(n multus.Network) bool {
	return !n.IsZero() && f.Rollout.Networks != nil && !f.Rollout.Networks[n]
}

func (f VolumeNetworkFacts) missingMessage(n multus.Network) string {
	if _, broken := f.Rollout.Networks[n]; broken {
		return catalog.NetworkProblem(n, f.Rollout.Networks)
	}
	return fmt.Sprintf("there is no NetworkAttachmentDefinition %s%s; volumes keep their network, and no pod restarts, until you create the network", n, hint(f.Rollout.Networks))
}

// checkFree refuses addresses that another volume has on the same network. A new object only gets a warning: rwx.Contest gives it none
// of them.
func (v *Verdict) checkFree(annotations map[string]string, request rwx.Request, facts VolumeNetworkFacts) {
	network := facts.networkOf(request)
	if network.IsZero() || !rwx.AsksForNetwork(annotations) {
		return
	}
	for _, mine := range []struct {
		key      string
		identity multus.Identity
	}{
		{rwx.VolumeAddressesAnnotation, multus.Identity{Addresses: request.Identity.Addresses}},
		{rwx.VolumeMACAnnotation, multus.Identity{MAC: request.Identity.MAC}},
	} {
		for _, holder := range facts.Holders {
			if shared := mine.identity.Shared(holder.Identity); shared != "" && holder.Network == network {
				taken := rwx.Taken(shared, network)
				if facts.Created { // a claim that is restored beside its original must come up with its data
					v.warn("%s: the volume comes up without it, with what the network assigns; choose another", taken)
					break
				}
				v.refuse(ReasonAddressTaken, field.Invalid(annotation(mine.key), annotations[mine.key], taken+": choose another"))
				break // an annotation and a Service may both hold the address
			}
		}
	}
}

// checkFits refuses addresses that no server can have: the network's gateway, one of another subnet, or one that another pod reports.
func (v *Verdict) checkFits(annotations map[string]string, request rwx.Request, facts VolumeNetworkFacts) {
	network := facts.networkOf(request)
	for _, fixed := range request.Identity.Prefixes() {
		ip := fixed.Addr()
		why := multus.Misfit(facts.Rollout.Configs[network], fixed)
		if why == "" && facts.isReported(network, ip) {
			why = "is of a pod that runs"
		}
		if why != "" && !network.IsZero() && !slices.ContainsFunc(facts.Holders, func(h rwx.Claimant) bool {
			return h.Network == network && request.Identity.Shared(h.Identity) != "" // which checkFree has judged
		}) {
			v.refuse(ReasonAddressTaken, field.Invalid(annotation(rwx.VolumeAddressesAnnotation), annotations[rwx.VolumeAddressesAnnotation],
				fmt.Sprintf("address %s on network %s %s: choose another", ip, network, why)))
		}
	}
}

// isReported reports whether a pod, but the volume's own server, has an address on a network. It is not named: it may be of another
// tenant.
func (f VolumeNetworkFacts) isReported(network multus.Network, address netip.Addr) bool {
	has := func(reported []multus.Reported) bool {
		return slices.ContainsFunc(reported, func(i multus.Reported) bool {
			return i.Network == network.String() && slices.Contains(i.IPs, address.String())
		})
	}
	return slices.ContainsFunc(f.Rollout.Clients, func(c rwx.Client) bool { return has(c.Interfaces) }) ||
		slices.ContainsFunc(f.Rollout.Servers, func(s rwx.Server) bool {
			own := slices.ContainsFunc(f.Concerned, func(v rwx.Volume) bool { return v.Name == s.Volume })
			return !own && has(s.Reported)
		})
}

// networkOf is the network that the volume will be on when the request is applied.
func (f VolumeNetworkFacts) networkOf(request rwx.Request) multus.Network {
	if request.Network.IsZero() {
		return f.Rollout.Record.Servers.Network
	}
	return request.Network
}

// noEffect says why the annotations have no effect, "" if they have one.
func (f VolumeNetworkFacts) noEffect(kind string, o VolumeObject, request rwx.Request) string {
	annotations := o.Metadata.Annotations
	_, hasNetwork := annotations[rwx.VolumeNetworkAnnotation]
	self := rwx.Asker{Kind: kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}.String()
	switch {
	case !rwx.AsksForNetwork(annotations):
		return ""
	case f.Driver != "" && f.Driver != f.Names.Driver:
		return fmt.Sprintf("%s belongs to driver %s, and Fairlead serves only %s", self, f.Driver, f.Names.Driver)
	case kind != rwx.ClassKind && !rwx.IsShared(o.Spec.AccessModes):
		return fmt.Sprintf("%s is neither ReadWriteMany nor ReadOnlyMany, so no server pod serves it over NFS", self)
	case slices.ContainsFunc(f.Concerned, func(v rwx.Volume) bool { return !v.Shared }) && kind != rwx.ClassKind:
		return "the volume is migratable, so no server pod serves it over NFS"
	case request.Problem != "":
		return request.Problem
	case hasNetwork && request.Source != self && kind != rwx.ClassKind:
		return fmt.Sprintf("%s names %q, and takes precedence", request.Source, request.Network)
	case !request.Identity.IsZero() && f.networkOf(request).IsZero():
		return "RWX volumes are on the cluster network, where addresses can't be fixed; name a network in " + rwx.VolumeNetworkAnnotation
	}
	return ""
}

// warnOfEffect says what the change waits for. A network that does not exist is the only thing named: detaching the volume
// changes nothing until the network is created.
func (v *Verdict) warnOfEffect(request rwx.Request, facts VolumeNetworkFacts) {
	if facts.isMissing(request.Network) {
		v.pend(facts.missingMessage(request.Network))
		return
	}
	if doubt := facts.Rollout.Doubt(request.Network); doubt != "" {
		v.warn("%s", doubt)
	}
	place, ready := facts.Rollout.Record.Place(request)
	if !ready && !facts.OmitEffect {
		v.pend(rollout.JoiningWarning(request.Network, facts.Rollout))
	}
	var attached []catalog.Blocker
	for _, volume := range facts.Concerned {
		placed := slices.ContainsFunc(facts.Rollout.Services, func(s rwx.Service) bool {
			return s.Volume == volume.Name && ready && s.Placement(facts.Rollout.Record.Clients) == place
		})
		if volume.Shared && volume.Attached && !placed {
			attached = append(attached, catalog.AttachedVolume(volume, ""))
		}
	}
	if len(attached) > 0 {
		v.pend("the change takes effect when the volume is detached: " + catalog.Detail(attached))
	}
}
