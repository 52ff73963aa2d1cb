package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/mutators"
)

// workloadPods keeps pods from being scheduled whose volumes Kubernetes does not
// attach, while such a volume is held by a lost node. It fails open.
//
// Objects: new pods that use claims, in namespaces that ask for it.
func (f *Fencing) workloadPods() rule[mutators.WorkloadPod] {
	return rule[mutators.WorkloadPod]{
		name:  entryWorkloadPods,
		kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		decide: func(ctx context.Context, r *Request[mutators.WorkloadPod]) (Decision, error) {
			var held []mutators.HeldClaim
			for _, claim := range r.Object.Claims() {
				h, err := f.heldClaim(ctx, r.Namespace, claim)
				if err != nil {
					return Decision{}, err
				}
				if h != nil {
					held = append(held, *h)
				}
			}
			return fromMutation(mutators.GateWorkloadPod(*r.Object, held)), nil
		},
	}
}

// heldClaim tells whether a lost node holds the volume of a claim, and Kubernetes
// would not attach it: nil if not.
func (f *Fencing) heldClaim(ctx context.Context, namespace, claim string) (*mutators.HeldClaim, error) {
	volume, err := f.Live.BoundVolume(ctx, namespace, claim)
	if err != nil || volume == nil || volume.Driver == "" {
		return nil, err
	}
	policy, none, err := f.policy(ctx, volume.Driver)
	if err != nil || none != "" {
		return nil, err
	}
	if attached, err := f.Live.Attached(ctx, volume.Driver); err != nil || attached {
		return nil, err
	}
	held, err := f.held(ctx, *volume, "", policy)
	if err != nil || held == nil {
		return nil, err
	}
	return &mutators.HeldClaim{Claim: claim, Volume: volume.Name, Node: held.Node}, nil
}
