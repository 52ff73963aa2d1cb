package webhook

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"

	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// Longhorn is what the rules for Longhorn are served with.
type Longhorn struct {
	longhorn.Names
	Duties config.Duties
	// ClusterDomain is the DNS domain of the cluster.
	ClusterDomain string
	// Missing: what to do about a network that does not exist; InUse: about a change of a network in use.
	Missing, InUse settings.Strictness
	// Policy of rollouts.
	Policy rollout.Policy
	// Record reads the network record.
	Record func(context.Context) (rollout.Record, error)
	// Live reads from the API server.
	Live *reads.Reader
	// OmitEffect: there is no cluster, so no component is known. Warnings do not say what a change does to components.
	OmitEffect bool
}

// NewLonghorn serves the rules by the configuration, with live reads. The configuration has Longhorn.
func NewLonghorn(c *config.Configuration, live *reads.Reader) *Longhorn {
	l := c.Longhorn
	return &Longhorn{
		Names: l.Names(), Duties: l.Duties, ClusterDomain: c.ClusterDomain, Missing: l.Networks.Missing, InUse: l.Networks.InUse, Policy: l.Policy(),
		Record: live.Record, Live: live,
	}
}

func (l *Longhorn) shapesPods() bool { return l.Duties.Pods == config.On }

// shapesClients: if Longhorn rolls out by itself, clients stay as it builds them.
func (l *Longhorn) shapesClients() bool { return l.shapesPods() && l.Duties.Settings == config.Apply }

func (l *Longhorn) shapesServices() bool { return l.Duties.Services == config.On }

func (l *Longhorn) checksSettings() bool { return l.Duties.Settings != config.Off }

// clientPods adds the recorded network. A pod passes without the network if the record can't be read: the template has the
// network too, and the controller restarts a pod without it.
func (l *Longhorn) clientPods() admission.Rule[mutators.ClientPod] {
	return admission.Rule[mutators.ClientPod]{
		Kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		Decide: func(ctx context.Context, r *admission.Request[mutators.ClientPod]) (admission.Decision, error) {
			record, err := l.record(ctx)
			if err != nil {
				return admission.Decision{}, err
			}
			return admission.FromMutation(mutators.MutateClientPod(*r.Object, l.Names, record)), nil
		},
	}
}

func (l *Longhorn) clientTemplate() admission.Rule[mutators.ClientTemplate] {
	return admission.Rule[mutators.ClientTemplate]{
		Kinds: []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "DaemonSet"}},
		Decide: func(ctx context.Context, r *admission.Request[mutators.ClientTemplate]) (admission.Decision, error) {
			if r.Name != l.ClientDaemonSet {
				return admission.FromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: "not the client DaemonSet"}), nil
			}
			record, err := l.record(ctx)
			if err != nil {
				return admission.Decision{}, err
			}
			return admission.FromMutation(mutators.MutateClientTemplate(*r.Object, r.OldObject, l.Names, record)), nil
		},
	}
}

func (l *Longhorn) serverPods() admission.Rule[mutators.ServerPod] {
	return admission.Rule[mutators.ServerPod]{
		Kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		Decide: func(ctx context.Context, r *admission.Request[mutators.ServerPod]) (admission.Decision, error) {
			// Live: the Service may have been created a millisecond ago.
			var service *rwx.Service
			if volume := r.Object.Metadata.Labels[l.VolumeLabel]; volume != "" {
				var err error
				if service, err = l.Live.Service(ctx, volume); err != nil {
					return admission.Decision{}, err
				}
			}
			record, err := l.record(ctx)
			if err != nil {
				return admission.Decision{}, err
			}
			return admission.FromMutation(mutators.MutateServerPod(*r.Object, l.Names, service, record)), nil
		},
	}
}

func (l *Longhorn) services() admission.Rule[mutators.Service] {
	return admission.Rule[mutators.Service]{
		Kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Service"}},
		Decide: func(ctx context.Context, r *admission.Request[mutators.Service]) (admission.Decision, error) {
			// Live: rollout.DefaultSettle relies on it.
			record, err := l.record(ctx)
			if err != nil {
				return admission.Decision{}, err
			}
			running, err := l.Live.RunningServer(ctx, r.Object.Metadata.Labels[l.VolumeLabel])
			if err != nil {
				return admission.Decision{}, err
			}
			var request rwx.Request
			if l.Duties.ServesVolumeNetworks() {
				if request, err = l.Live.Request(ctx, r.Object.Metadata.Labels[l.VolumeLabel]); err != nil {
					return admission.Decision{}, err
				}
			}
			return admission.FromMutation(mutators.MutateService(l.Names, *r.Object, running, record, request)), nil
		},
	}
}

func (l *Longhorn) shareManagers() admission.Rule[mutators.ShareManager] {
	return admission.Rule[mutators.ShareManager]{
		Kinds: []metav1.GroupVersionKind{metav1.GroupVersionKind(longhorn.GroupVersion.WithKind(longhorn.ShareManagerKind))},
		Decide: func(ctx context.Context, r *admission.Request[mutators.ShareManager]) (admission.Decision, error) {
			service, err := l.Live.Service(ctx, r.Object.Metadata.Name)
			if err != nil {
				return admission.Decision{}, err
			}
			return admission.FromMutation(mutators.MutateShareManager(*r.Object, r.Namespace, service, l.ClusterDomain)), nil
		},
	}
}

// record is empty until the controller has written one.
func (l *Longhorn) record(ctx context.Context) (rollout.Record, error) {
	record, err := l.Record(ctx)
	if errors.Is(err, reads.ErrNotRecorded) {
		return record, nil
	}
	return record, err
}

// instanceManagerDeletions keeps the storage system from deleting an instance manager that serves an attached volume. It
// fails open.
func (l *Longhorn) instanceManagerDeletions() admission.Rule[validators.InstanceManagerPod] {
	return admission.Rule[validators.InstanceManagerPod]{
		Deletes: true,
		Kinds:   []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		Decide: func(ctx context.Context, r *admission.Request[validators.InstanceManagerPod]) (admission.Decision, error) {
			pod := r.OldObject
			if pod == nil { // the entry is only for deletions
				return admission.Allowed("not a deletion"), nil
			}
			var facts planner.InstanceManagerFacts
			if pod.IsReady() {
				var err error
				if facts, err = l.Live.InstanceManagerFacts(ctx, pod.Metadata.Name, pod.Spec.NodeName); err != nil {
					return admission.Decision{}, err
				}
			}
			v := validators.ValidateInstanceManagerDeletion(*pod, facts)
			if len(v.Problems) > 0 {
				return admission.Forbidden(r.Resource, pod.Metadata.Name, field.NewPath("metadata", "name"), v.Reason, v.Problems[0].Detail), nil
			}
			return admission.Allowed(v.Reason), nil
		},
	}
}
