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
			unattached := false
			for _, claim := range r.Object.Claims() {
				h, may, err := f.heldClaim(ctx, r.Namespace, claim)
				if err != nil {
					return Decision{}, err
				}
				unattached = unattached || may
				if h != nil {
					held = append(held, *h)
				}
			}
			return fromMutation(mutators.GateWorkloadPod(*r.Object, held, unattached)), nil
		},
	}
}

// heldClaim tells whether a lost node holds the volume of a claim, nil if not, and
// whether Kubernetes does not attach the volume of it, or that is not known yet: of a
// claim that is not bound, nobody can tell.
//
// It goes by nodes' records and not by other pods of the claim, as the controller does
// before it takes a gate away: those are on record moments after they got to their node, by their
// label, and the webhook may not read pods.
func (f *Fencing) heldClaim(ctx context.Context, namespace, claim string) (held *mutators.HeldClaim, unattached bool, err error) {
	volume, err := f.Live.BoundVolume(ctx, namespace, claim)
	if err != nil || volume == nil {
		return nil, true, err
	}
	if volume.Driver == "" {
		return nil, false, nil
	}
	if !f.protects(volume.Driver) {
		return nil, false, nil
	}
	if attached, err := f.Live.Attached(ctx, volume.Driver); err != nil || attached {
		return nil, false, err
	}
	h, err := f.held(ctx, *volume, "")
	if err != nil || h == nil {
		return nil, true, err
	}
	return &mutators.HeldClaim{Claim: claim, Volume: volume.Name, Node: h.Node}, true, nil
}
