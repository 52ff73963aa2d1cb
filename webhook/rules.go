package webhook

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
)

// Profile is what the rules of one profile are served with.
type Profile struct {
	storage.Profile
	Duties config.Duties
	// Policy of roll-outs.
	Policy rollout.Policy
	// Record is the network record, perhaps a moment old.
	Record func() rollout.Record
	// Live reads from the API server.
	Live *cluster.Reader
}

func (p Profile) clientPods() rule[mutators.ClientPod] {
	return rule[mutators.ClientPod]{
		name:  p.Name + "/" + entryClientPods,
		kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		decide: func(_ context.Context, r *Request[mutators.ClientPod]) (Decision, error) {
			// A moment old will do: the template carries the network too, and
			// the controller restarts a pod that came without.
			return fromMutation(mutators.MutateClientPod(*r.Object, p.interfaces(r.Namespace), p.Record())), nil
		},
	}
}

func (p Profile) clientTemplate() rule[mutators.ClientTemplate] {
	return rule[mutators.ClientTemplate]{
		name:  p.Name + "/" + entryClientTemplate,
		kinds: []metav1.GroupVersionKind{{Group: "apps", Version: "v1", Kind: "DaemonSet"}},
		decide: func(ctx context.Context, r *Request[mutators.ClientTemplate]) (Decision, error) {
			record, err := p.liveRecord(ctx)
			if err != nil {
				return Decision{}, err
			}
			return fromMutation(mutators.MutateClientTemplate(*r.Object, r.OldObject, p.interfaces(r.Namespace), record)), nil
		},
	}
}

func (p Profile) serverPods() rule[mutators.ServerPod] {
	return rule[mutators.ServerPod]{
		name:  p.Name + "/" + entryServerPods,
		kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		decide: func(ctx context.Context, r *Request[mutators.ServerPod]) (Decision, error) {
			// Live: the Service may have been created a millisecond ago.
			var service *storage.Service
			if volume := r.Object.Metadata.Labels[p.VolumeLabel]; volume != "" {
				var err error
				if service, err = p.Live.Service(ctx, volume); err != nil {
					return Decision{}, err
				}
			}
			record, err := p.liveRecord(ctx)
			if err != nil {
				return Decision{}, err
			}
			return fromMutation(mutators.MutateServerPod(*r.Object, p.interfaces(r.Namespace), service, record)), nil
		},
	}
}

func (p Profile) services() rule[mutators.Service] {
	return rule[mutators.Service]{
		name:  p.Name + "/" + entryServices,
		kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Service"}},
		decide: func(ctx context.Context, r *Request[mutators.Service]) (Decision, error) {
			// Live: settings.DefaultSettle counts on it.
			record, err := p.liveRecord(ctx)
			if err != nil {
				return Decision{}, err
			}
			running, err := p.Live.RunningServer(ctx, r.Object.Metadata.Labels[p.VolumeLabel])
			if err != nil {
				return Decision{}, err
			}
			var request storage.Request
			if p.Duties.ServesVolumeNetworks() {
				if request, err = p.Live.Request(ctx, r.Object.Metadata.Labels[p.VolumeLabel]); err != nil {
					return Decision{}, err
				}
			}
			return fromMutation(mutators.MutateService(*r.Object, running, record, request)), nil
		},
	}
}

func (p Profile) shareManagers(clusterDomain string) rule[mutators.ShareManager] {
	return rule[mutators.ShareManager]{
		name:  p.Name + "/" + entryShareManagers,
		kinds: []metav1.GroupVersionKind{{Group: "longhorn.io", Version: "v1beta2", Kind: "ShareManager"}},
		decide: func(ctx context.Context, r *Request[mutators.ShareManager]) (Decision, error) {
			service, err := p.Live.Service(ctx, r.Object.Metadata.Name)
			if err != nil {
				return Decision{}, err
			}
			return fromMutation(mutators.MutateShareManager(*r.Object, r.Namespace, service, clusterDomain)), nil
		},
	}
}

// liveRecord reads the record, which is unknown until the controller has begun one.
func (p Profile) liveRecord(ctx context.Context) (rollout.Record, error) {
	record, err := p.Live.Record(ctx)
	if errors.Is(err, cluster.ErrNotRecorded) {
		return record, nil
	}
	return record, err
}

func (p Profile) interfaces(namespace string) mutators.Interfaces {
	return mutators.Interfaces{Names: p.Profile.Interfaces(), Namespace: namespace}
}

func networks(profiles []Profile, inUse config.Strictness) rule[validators.NetworkDefinition] {
	return rule[validators.NetworkDefinition]{
		name:    entryNetworks,
		deletes: true,
		kinds:   []metav1.GroupVersionKind{{Group: cluster.NetworkKind.Group, Version: cluster.NetworkKind.Version, Kind: cluster.NetworkKind.Kind}},
		decide: func(ctx context.Context, r *Request[validators.NetworkDefinition]) (Decision, error) {
			end, err := profiles[0].Live.Turn(ctx)
			if err != nil {
				return Decision{}, err
			}
			defer end()
			var facts []validators.NetworkFacts
			for _, p := range profiles {
				f, err := p.networkFacts(ctx, inUse)
				if err != nil {
					return Decision{}, err
				}
				facts = append(facts, f)
			}
			changed := r.OldObject
			if changed == nil {
				changed = r.Object
			}
			network := storage.Network{Namespace: r.Namespace, Name: changed.Metadata.Name}
			resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
			return fromVerdict(validators.ValidateNetwork(network, r.Operation == admissionv1.Delete, facts), resource, network.Name), nil
		},
	}
}

func (p Profile) networkFacts(ctx context.Context, inUse config.Strictness) (validators.NetworkFacts, error) {
	facts := validators.NetworkFacts{Profile: p.Profile, Policy: validators.Strictness(inUse)}
	own, system, err := p.Live.Values(ctx)
	if err != nil {
		return facts, err
	}
	facts.Values = catalog.Resolve(own, system, p.Name)
	if facts.Record, err = p.liveRecord(ctx); err != nil {
		return facts, err
	}
	if facts.Services, err = p.Live.Services(ctx); err != nil {
		return facts, err
	}
	if facts.Servers, err = p.Live.Servers(ctx); err != nil {
		return facts, err
	}
	if facts.Clients, err = p.Live.Clients(ctx); err != nil {
		return facts, fmt.Errorf("who uses the network: %w", err)
	}
	if p.Duties.ServesVolumeNetworks() {
		requests, err := p.Live.Requests(ctx)
		if err != nil {
			return facts, fmt.Errorf("who asks for the network: %w", err)
		}
		facts.Requests, facts.Classes = requests.ByVolume, requests.Classes
	}
	return facts, nil
}
