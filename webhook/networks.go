package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// networks judges changes of networks in use.
func (l *Longhorn) networks(shared *lists.Shared[networkUse]) admission.Rule[validators.NetworkDefinition] {
	return admission.Rule[validators.NetworkDefinition]{
		Deletes: true,
		Kinds:   []metav1.GroupVersionKind{metav1.GroupVersionKind(reads.NetworkKind)},
		Decide: func(ctx context.Context, r *admission.Request[validators.NetworkDefinition]) (admission.Decision, error) {
			if r.Object != nil && r.OldObject != nil && r.Object.Spec.Config == r.OldObject.Spec.Config {
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			use, err := shared.Get(ctx)
			if err != nil {
				return admission.Decision{}, err
			}
			facts := validators.NetworkFacts{
				Policy: l.InUse, Values: use.values, Rollout: use.rollout, Requests: use.requests.ByVolume, Classes: use.requests.Classes,
			}
			changed := r.OldObject
			if changed == nil {
				changed = r.Object
			}
			var config *string
			if r.Operation != admissionv1.Delete && r.Object != nil {
				config = &r.Object.Spec.Config
			}
			network := multus.Network{Namespace: r.Namespace, Name: changed.Metadata.Name}
			return admission.FromVerdict(validators.ValidateNetwork(network, config, facts), r.Resource, network.Name), nil
		},
	}
}

// networkUse is what the volumes have and request. The rules of networks and of requests for them share one read.
type networkUse struct {
	values   catalog.Values
	rollout  rollout.Rollout
	requests reads.Requests
}

func (l *Longhorn) networkUse(ctx context.Context) (use networkUse, _ error) {
	var err error
	if use.rollout, use.values, err = l.Live.Rollout(ctx, time.Now()); err != nil {
		return use, err
	}
	if l.Duties.ServesVolumeNetworks() {
		use.requests, err = l.Live.Requests(ctx)
	}
	return use, err
}

func (l *Longhorn) volumeNetworks(shared *lists.Shared[networkUse]) admission.Rule[validators.VolumeObject] {
	return admission.Rule[validators.VolumeObject]{
		Kinds: []metav1.GroupVersionKind{
			{Version: "v1", Kind: rwx.ClaimKind}, {Version: "v1", Kind: rwx.VolumeKind},
			{Group: "storage.k8s.io", Version: "v1", Kind: rwx.ClassKind},
		},
		Decide: func(ctx context.Context, r *admission.Request[validators.VolumeObject]) (admission.Decision, error) {
			if !requestChanged(r) { // another annotation with Fairlead's prefix has changed
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			object := *r.Object
			object.Metadata.Namespace = r.Namespace
			a := volumeFacts{live: l.Live, kind: r.Kind.Kind, object: object, facts: validators.VolumeNetworkFacts{
				Names: l.Names, Permitted: l.VolumeNetworks, OmitEffect: l.OmitEffect, MissingPolicy: l.Missing, Created: r.Operation == admissionv1.Create,
			}}
			if err := a.gather(ctx, shared); err != nil {
				return admission.Decision{}, fmt.Errorf("reading the requests of a volume: %w", err)
			}
			return admission.FromVerdict(validators.ValidateVolumeNetwork(r.Kind.Kind, object, a.facts), r.Resource, r.Name), nil
		},
	}
}

// requestChanged reports whether an annotation that requests a per-volume network is added, changed or removed.
func requestChanged(r *admission.Request[validators.VolumeObject]) bool {
	var old map[string]string
	if r.OldObject != nil {
		old = r.OldObject.Metadata.Annotations
	}
	return slices.ContainsFunc(rwx.VolumeAnnotations(), func(key string) bool {
		was, before := old[key]
		is, now := r.Object.Metadata.Annotations[key]
		return before != now || was != is
	})
}

// volumeFacts reads live facts about one object that requests a network.
type volumeFacts struct {
	live   *reads.Reader
	kind   string
	object validators.VolumeObject
	facts  validators.VolumeNetworkFacts
	// volume of the object; "" for a class, and before the volume exists.
	volume string
}

func (a *volumeFacts) gather(ctx context.Context, shared *lists.Shared[networkUse]) error {
	if err := a.sources(ctx); err != nil {
		return err
	}
	use, err := shared.Get(ctx)
	if err != nil {
		return err
	}
	a.facts.Rollout = use.rollout
	a.concerned(use.requests)
	a.holders(use.requests)
	return nil
}

// sources reads the other objects that may request a network for the same volume.
func (a *volumeFacts) sources(ctx context.Context) error {
	live, spec, facts := a.live, a.object.Spec, &a.facts
	self := rwx.RequestSource{
		Asker:       rwx.Asker{Kind: a.kind, Namespace: a.object.Metadata.Namespace, Name: a.object.Metadata.Name},
		Annotations: a.object.Metadata.Annotations,
	}
	var err error
	class := spec.StorageClassName
	switch a.kind {
	case rwx.ClassKind:
		facts.Class, facts.Driver = self, a.object.Provisioner
		return nil
	case rwx.VolumeKind:
		facts.Volume = self
		if spec.CSI != nil {
			facts.Driver, a.volume = spec.CSI.Driver, spec.CSI.VolumeHandle
		}
		if ref := spec.ClaimRef; ref != nil {
			if facts.Claim, err = live.Claim(ctx, ref.Namespace, ref.Name, ref.UID); err != nil {
				return err
			}
		}
	case rwx.ClaimKind:
		facts.Claim = self
		if spec.VolumeName == "" {
			break
		}
		pv, err := live.PersistentVolume(ctx, spec.VolumeName)
		if err != nil {
			return err
		}
		if pv != nil && pv.Spec.CSI != nil {
			facts.Volume = reads.SourceOf(rwx.VolumeKind, pv)
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

// concerned adds the volumes that the change affects. A class affects its volumes without a request of their own.
func (a *volumeFacts) concerned(requests reads.Requests) {
	class := rwx.Asker{Kind: rwx.ClassKind, Name: a.object.Metadata.Name}.String()
	for _, v := range a.facts.Rollout.Volumes {
		source := requests.ByVolume[v.Name].Source
		ofClass := a.kind == rwx.ClassKind && requests.ClassOf[v.Name] == a.object.Metadata.Name && (source == "" || source == class)
		if ofClass || a.volume != "" && v.Name == a.volume {
			a.facts.Concerned = append(a.facts.Concerned, v)
		}
	}
}

// holders are the claimants of addresses, without the object's own volume or claim.
func (a *volumeFacts) holders(requests reads.Requests) {
	own := a.facts.Claim.Namespace + "/" + a.facts.Claim.Name
	a.facts.Holders = slices.DeleteFunc(requests.Claimants(a.facts.Rollout.Record, a.facts.Rollout.Services), func(c rwx.Claimant) bool {
		return c.Volume == a.volume || c.Volume == own
	})
}
