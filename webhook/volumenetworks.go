package webhook

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/validators"
)

func volumeNetworks(profiles []Profile, missing config.Strictness) rule[validators.VolumeAsking] {
	return rule[validators.VolumeAsking]{
		name: entryVolumeNetworks,
		kinds: []metav1.GroupVersionKind{
			{Version: "v1", Kind: storage.ClaimKind}, {Version: "v1", Kind: storage.VolumeKind},
			{Group: "storage.k8s.io", Version: "v1", Kind: storage.ClassKind},
		},
		decide: func(ctx context.Context, r *Request[validators.VolumeAsking]) (Decision, error) {
			if !requestChanged(r) { // the webhook was called for an annotation that no rule reads
				return Decision{Outcome: outcomeAllowed, Reason: validators.ReasonValid}, nil
			}
			// A name that the API server has yet to make up is not on the object.
			object := *r.Object
			object.Metadata.Namespace = r.Namespace
			a := asking{profile: profiles[0], kind: r.Kind.Kind, object: object}
			for _, p := range profiles {
				a.facts.Drivers = append(a.facts.Drivers, p.Driver)
			}
			a.facts.MissingPolicy = validators.Strictness(missing)
			end, err := profiles[0].Live.Turn(ctx)
			if err != nil {
				return Decision{}, err
			}
			defer end()
			if err := a.gather(ctx, profiles); err != nil {
				return Decision{}, fmt.Errorf("what is asked for a volume: %w", err)
			}
			resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
			return fromVerdict(validators.ValidateVolumeNetwork(r.Kind.Kind, object, a.facts), resource, r.Name), nil
		},
	}
}

// requestChanged tells whether an annotation that asks for a network for one volume
// comes, changes or goes.
func requestChanged(r *Request[validators.VolumeAsking]) bool {
	var old map[string]string
	if r.OldObject != nil {
		old = r.OldObject.Metadata.Annotations
	}
	return slices.ContainsFunc(storage.VolumeAnnotations(), func(key string) bool {
		was, before := old[key]
		is, now := r.Object.Metadata.Annotations[key]
		return before != now || was != is
	})
}

// asking gathers, live, what one object that asks is judged by.
type asking struct {
	// profile of the volume's driver; the first while that is open.
	profile Profile
	kind    string
	object  validators.VolumeAsking
	facts   validators.VolumeNetworkFacts
	// volume of the object, "" for a class and where there is none yet.
	volume string
}

func (a *asking) gather(ctx context.Context, profiles []Profile) error {
	if err := a.sources(ctx); err != nil {
		return err
	}
	if i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Driver == a.facts.Driver }); i >= 0 {
		a.profile = profiles[i]
	}
	live, facts := a.profile.Live, &a.facts
	facts.Rollout.MountsFromHost = a.profile.MountsFromHost
	own, system, err := live.Values(ctx)
	if err != nil {
		return err
	}
	// A value in force that can't be read is told by whoever rolls out.
	facts.Rollout.Desired, _ = catalog.SharedVolumeNetwork(catalog.Resolve(own, system, a.profile.Name), a.profile.Profile)
	if facts.Rollout.Record, err = a.profile.liveRecord(ctx); err != nil {
		return err
	}
	if facts.Rollout.DaemonSet, err = live.DaemonSet(ctx); err != nil {
		return err
	}
	if facts.Rollout.Clients, err = live.Clients(ctx); err != nil {
		return err
	}
	if facts.Rollout.Volumes, err = live.Volumes(ctx); err != nil {
		return err
	}
	if facts.Services, err = live.Services(ctx); err != nil {
		return err
	}
	requests, err := live.Requests(ctx)
	if err != nil {
		return err
	}
	a.concerned(requests)
	a.holders(requests)
	// A cluster without Multus has no such kind; the rest is judged all the same.
	facts.Networks, err = live.Networks(ctx)
	facts.NetworksKnown = err == nil
	return nil
}

// sources finds the other objects that ask for the same volume.
func (a *asking) sources(ctx context.Context) error {
	live, spec, facts := a.profile.Live, a.object.Spec, &a.facts
	self := storage.RequestSource{Kind: a.kind, Namespace: a.object.Metadata.Namespace, Name: a.object.Metadata.Name, Annotations: a.object.Metadata.Annotations}
	var err error
	class := spec.StorageClassName
	switch a.kind {
	case storage.ClassKind:
		facts.Class, facts.Driver = self, a.object.Provisioner
		return nil
	case storage.VolumeKind:
		facts.Volume = self
		if spec.CSI != nil {
			facts.Driver, a.volume = spec.CSI.Driver, spec.CSI.VolumeHandle
		}
		if ref := spec.ClaimRef; ref != nil {
			if facts.Claim, err = live.Claim(ctx, ref.Namespace, ref.Name, ref.UID); err != nil {
				return err
			}
		}
	case storage.ClaimKind:
		facts.Claim = self
		if spec.VolumeName == "" {
			break
		}
		pv, err := live.PersistentVolume(ctx, spec.VolumeName)
		if err != nil {
			return err
		}
		if pv != nil && pv.Spec.CSI != nil {
			facts.Volume = storage.RequestSource{Kind: storage.VolumeKind, Name: pv.Name, Annotations: pv.Annotations}
			facts.Driver, a.volume, class = pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle, pv.Spec.StorageClassName
		}
	}
	source, provisioner, err := live.Class(ctx, class)
	if err != nil {
		return err
	}
	if facts.Driver == "" {
		facts.Driver = provisioner
	}
	if provisioner == facts.Driver {
		facts.Class = source
	}
	return nil
}

// concerned are the volumes that the change is about: of a class, those that ask for nothing else.
func (a *asking) concerned(requests cluster.Requests) {
	class := storage.RequestSource{Kind: storage.ClassKind, Name: a.object.Metadata.Name}.String()
	for _, v := range a.facts.Rollout.Volumes {
		source := requests.ByVolume[v.Name].Source
		ofClass := a.kind == storage.ClassKind && requests.ClassOf[v.Name] == a.object.Metadata.Name && (source == "" || source == class)
		if ofClass || a.volume != "" && v.Name == a.volume {
			a.facts.Concerned = append(a.facts.Concerned, v)
		}
	}
}

// holders are the other volumes, and claims that have none yet, with what they
// ask for, and the Services that still have what was asked for before.
func (a *asking) holders(requests cluster.Requests) {
	record := a.facts.Rollout.Record
	hold := func(who string, n storage.Network, identity storage.Identity) {
		if n.IsZero() {
			n = record.Servers.Network
		}
		if !identity.IsZero() {
			a.facts.Holders = append(a.facts.Holders, validators.IdentityHolder{Who: who, Network: n, Identity: identity})
		}
	}
	for volume, request := range requests.ByVolume {
		if volume != a.volume {
			hold(fmt.Sprintf("volume %s (%s)", volume, request.Source), request.Network, request.Identity)
		}
	}
	for claim, request := range requests.Unbound {
		if claim != a.facts.Claim.Namespace+"/"+a.facts.Claim.Name {
			hold(storage.ClaimKind+" "+claim, request.Network, request.Identity)
		}
	}
	for _, s := range a.facts.Services {
		if s.Volume != a.volume {
			hold(fmt.Sprintf("volume %s (Service %s)", s.Volume, s.Name), s.Recorded.Network, s.Identity)
		}
	}
	slices.SortFunc(a.facts.Holders, func(x, y validators.IdentityHolder) int {
		if x.Who < y.Who {
			return -1
		}
		return 1
	})
}
