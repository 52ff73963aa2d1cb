package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
)

// NFS is what the rules of NFS services are served with.
type NFS struct {
	// Live reads from the API server, and knows the drivers that Fairlead serves.
	Live *nfs.NFSReader
}

// routes of NFS services. Without any driver they let everything pass.
func (n *NFS) routes(r routes) {
	on := n != nil && len(n.Live.Drivers()) > 0
	serve(r, nfsServicesPath, on, n.services())
	serve(r, nfsVolumesPath, on, n.volumes())
	serve(r, nfsVolumeOptionsPath, on, n.volumeOptions())
}

const reasonNotServed = "driver is not served"

var volumeKinds = []metav1.GroupVersionKind{{Version: "v1", Kind: "PersistentVolume"}}

// maxBackends is that of NFSService's definition. The API server refuses more before it asks; others may not.
const maxBackends = 1000

// services judges NFSServices. That a service may not be deleted is decided on
// what the API server has now: if that can't be read, the deletion is to be tried again.
func (n *NFS) services() rule[validators.NFSService] {
	return rule[validators.NFSService]{
		name:    entryNFSServices,
		deletes: true,
		kinds:   []metav1.GroupVersionKind{{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "NFSService"}},
		decide: func(ctx context.Context, r *Request[validators.NFSService]) (Decision, error) {
			resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
			if r.Operation == admissionv1.Delete {
				service := *r.OldObject
				use, err := n.use(ctx, service)
				if err != nil {
					return cannotJudge(err), nil
				}
				return fromVerdict(validators.ValidateNFSServiceDeletion(service, use), resource, service.Metadata.Name), nil
			}
			if n := len(r.Object.Spec.Backends); n > maxBackends {
				return forbidden(r.Resource, r.Object.Metadata.Name, field.NewPath("spec", "backends"), "too many backends", fmt.Sprintf("%d backends: at most %d are allowed", n, maxBackends)), nil
			}
			mounted := false
			if r.OldObject != nil && r.Object.ChangesPort(*r.OldObject) {
				use, err := n.use(ctx, *r.OldObject)
				if err != nil {
					return Decision{}, err
				}
				mounted = len(use.Mounts) > 0
			}
			return fromVerdict(validators.ValidateNFSService(*r.Object, r.OldObject, mounted), resource, r.Object.Metadata.Name), nil
		},
	}
}

// use of a service, read live.
func (n *NFS) use(ctx context.Context, s validators.NFSService) (validators.NFSServiceUse, error) {
	end, err := n.Live.Turn(ctx)
	if err != nil {
		return validators.NFSServiceUse{}, err
	}
	defer end()
	all, err := n.Live.Use(ctx)
	if err != nil {
		return validators.NFSServiceUse{}, err
	}
	of := all[types.NamespacedName{Namespace: s.Metadata.Namespace, Name: s.Metadata.Name}]
	use := validators.NFSServiceUse{Volumes: of.Volumes}
	for _, a := range of.Attachments {
		use.Mounts = append(use.Mounts, validators.NFSMount{Node: a.Node, PersistentVolume: a.PersistentVolume})
	}
	return use, nil
}

func (n *NFS) volumes() rule[volume.View] {
	return rule[volume.View]{
		name:  entryNFSVolumes,
		kinds: volumeKinds,
		decide: func(ctx context.Context, r *Request[volume.View]) (Decision, error) {
			fallback, served := n.Live.Default(r.Object.Driver())
			if !served {
				return allowed(reasonNotServed), nil
			}
			if r.OldObject != nil && r.Object.IsSame(*r.OldObject) {
				return allowed(validators.ReasonValid), nil
			}
			var facts validators.NFSVolumeFacts
			if facts.Key, facts.KeyProblem = volume.Service(r.Object.Attributes(), fallback); facts.KeyProblem == nil {
				var err error
				if facts.Service, err = n.Live.Service(ctx, facts.Key); err != nil {
					return Decision{}, err
				}
			}
			resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
			return fromVerdict(validators.ValidateNFSVolume(*r.Object, r.OldObject, facts), resource, r.Object.Metadata.Name), nil
		},
	}
}

func (n *NFS) volumeOptions() rule[volume.View] {
	return rule[volume.View]{
		name:  entryNFSVolumeOptions,
		kinds: volumeKinds,
		decide: func(ctx context.Context, r *Request[volume.View]) (Decision, error) {
			fallback, served := n.Live.Default(r.Object.Driver())
			if !served {
				return fromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: reasonNotServed}), nil
			}
			key, err := volume.Service(r.Object.Attributes(), fallback)
			if err != nil { // the validator says so
				return fromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: mutators.ReasonNoNFSService}), nil
			}
			service, err := n.Live.Service(ctx, key)
			if err != nil {
				return Decision{}, err
			}
			defaults := mutators.NFSDefaults{Service: key.String()}
			if service != nil {
				defaults.Exists, defaults.MountOptions, defaults.Versions = true, service.Spec.MountOptions, service.Spec.Versions
			}
			return fromMutation(mutators.DefaultNFSVolume(*r.Object, defaults)), nil
		},
	}
}
