package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// NFS has what the rules of NFS services need.
type NFS struct {
	// Live reads from the API server, and knows the drivers that Fairlead serves.
	Live *nfsreads.Reader
	// Statd: the nodes run rpc.statd (configuration: nfs.statd).
	Statd bool
}

const reasonNotServed = "driver is not served"

var volumeKinds = []metav1.GroupVersionKind{{Version: "v1", Kind: "PersistentVolume"}}

// maxBackends is from the definition of NFSService. The API server checks it first; other callers may not.
const maxBackends = 1000

// services checks NFSServices. A deletion is decided on live facts. If they are unreadable, the deletion is refused.
func (n *NFS) services() admission.Rule[validators.NFSService] {
	var read usesOfServices
	if n != nil {
		read = lists.NewShared(n.Live.Uses)
	}
	return admission.Rule[validators.NFSService]{
		Deletes: true,
		Kinds:   []metav1.GroupVersionKind{{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "NFSService"}},
		Decide: func(ctx context.Context, r *admission.Request[validators.NFSService]) (admission.Decision, error) {
			if r.Operation == admissionv1.Delete {
				service := *r.OldObject
				use, err := useOf(ctx, read, service)
				if err != nil {
					return admission.CannotJudge(err), nil
				}
				return admission.FromVerdict(validators.ValidateNFSServiceDeletion(service, use), r.Resource, service.Metadata.Name), nil
			}
			if r.OldObject != nil && equality.Semantic.DeepEqual(r.Object.Spec, r.OldObject.Spec) {
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			if n := len(r.Object.Spec.Backends); n > maxBackends {
				return admission.Forbidden(r.Resource, r.Object.Metadata.Name, field.NewPath("spec", "backends"), "too many backends", fmt.Sprintf("NFSService %s has %d backends: at most %d are allowed", r.Object.Metadata.Name, n, maxBackends)), nil
			}
			mounted := false
			if r.OldObject != nil && r.Object.ChangesPort(*r.OldObject) {
				use, err := useOf(ctx, read, *r.OldObject)
				if err != nil {
					return admission.Decision{}, err
				}
				mounted = len(use.Mounts) > 0
			}
			return admission.FromVerdict(validators.ValidateNFSService(*r.Object, r.OldObject, mounted), r.Resource, r.Object.Metadata.Name), nil
		},
	}
}

type usesOfServices = *lists.Shared[map[types.NamespacedName]*nfsreads.Use]

// useOf reads the use of a service, live.
func useOf(ctx context.Context, read usesOfServices, s validators.NFSService) (validators.NFSServiceUse, error) {
	all, err := read.Get(ctx)
	if err != nil {
		return validators.NFSServiceUse{}, err
	}
	of := all[types.NamespacedName{Namespace: s.Metadata.Namespace, Name: s.Metadata.Name}]
	if of == nil {
		return validators.NFSServiceUse{}, nil
	}
	use := validators.NFSServiceUse{Volumes: of.Volumes}
	for _, a := range of.Attachments {
		use.Mounts = append(use.Mounts, validators.NFSMount{Node: a.Node, PersistentVolume: a.PersistentVolume})
	}
	return use, nil
}

func (n *NFS) volumes() admission.Rule[volume.View] {
	return admission.Rule[volume.View]{
		Kinds: volumeKinds,
		Decide: func(ctx context.Context, r *admission.Request[volume.View]) (admission.Decision, error) {
			fallback, served := n.Live.Drivers[r.Object.Driver()]
			if !served {
				return admission.Allowed(reasonNotServed), nil
			}
			if r.OldObject != nil && r.Object.IsSame(*r.OldObject) {
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			facts := validators.NFSVolumeFacts{Statd: n.Statd}
			if facts.Key, facts.KeyProblem = volume.Service(r.Object.Attributes(), fallback); facts.KeyProblem == nil {
				var err error
				if facts.Service, err = n.Live.Service(ctx, facts.Key); err != nil {
					return admission.Decision{}, err
				}
			}
			return admission.FromVerdict(validators.ValidateNFSVolume(*r.Object, r.OldObject, facts), r.Resource, r.Object.Metadata.Name), nil
		},
	}
}

func (n *NFS) volumeOptions() admission.Rule[volume.View] {
	return admission.Rule[volume.View]{
		Kinds: volumeKinds,
		Decide: func(ctx context.Context, r *admission.Request[volume.View]) (admission.Decision, error) {
			fallback, served := n.Live.Drivers[r.Object.Driver()]
			if !served {
				return admission.FromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: reasonNotServed}), nil
			}
			key, err := volume.Service(r.Object.Attributes(), fallback)
			if err != nil { // the validator reports it
				return admission.FromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: mutators.ReasonNoNFSService}), nil
			}
			service, err := n.Live.Service(ctx, key)
			if err != nil {
				return admission.Decision{}, err
			}
			defaults := mutators.NFSDefaults{Service: key.String()}
			if service != nil {
				defaults.Exists, defaults.MountOptions, defaults.Versions = true, service.Spec.MountOptions, service.Spec.Versions
			}
			return admission.FromMutation(mutators.DefaultNFSVolume(*r.Object, defaults)), nil
		},
	}
}
