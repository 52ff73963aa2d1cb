package webhook

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// networks judges changes of networks that a profile uses.
func networks(profiles []Profile, reads networkReads, inUse validators.Strictness) admission.Rule[validators.NetworkDefinition] {
	return admission.Rule[validators.NetworkDefinition]{
		Deletes: true,
		Kinds:   []metav1.GroupVersionKind{metav1.GroupVersionKind(cluster.NetworkKind)},
		Decide: func(ctx context.Context, r *admission.Request[validators.NetworkDefinition]) (admission.Decision, error) {
			if r.Object != nil && r.OldObject != nil && r.Object.Spec.Config == r.OldObject.Spec.Config {
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			var facts []validators.NetworkFacts
			for _, p := range profiles {
				use, err := reads[p.Name].Get(ctx)
				if err != nil {
					return admission.Decision{}, err
				}
				facts = append(facts, validators.NetworkFacts{
					Profile: p.Profile, Policy: inUse, Values: use.values, Rollout: use.rollout,
					Requests: use.requests.ByVolume, Classes: use.requests.Classes,
				})
			}
			changed := r.OldObject
			if changed == nil {
				changed = r.Object
			}
			network := storage.Network{Namespace: r.Namespace, Name: changed.Metadata.Name}
			return admission.FromVerdict(validators.ValidateNetwork(network, r.Operation == admissionv1.Delete, facts), r.Resource, network.Name), nil
		},
	}
}

// networkReads has a shared read for each profile, for the rules of networks and of requests for them.
type networkReads map[string]*lists.Shared[networkUse]

func newNetworkReads(profiles []Profile) networkReads {
	reads := networkReads{}
	for _, p := range profiles {
		reads[p.Name] = lists.NewShared(p.networkUse)
	}
	return reads
}

// networkUse is what the volumes of a profile have and request.
type networkUse struct {
	values   catalog.Values
	rollout  rollout.Rollout
	requests cluster.Requests
}

func (p Profile) networkUse(ctx context.Context) (use networkUse, _ error) {
	var err error
	if use.rollout, use.values, err = p.Live.Rollout(ctx, time.Now()); err != nil {
		return use, err
	}
	if p.Duties.ServesVolumeNetworks() {
		use.requests, err = p.Live.Requests(ctx)
	}
	return use, err
}
