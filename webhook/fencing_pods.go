package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// workloadPods gates new pods while a lost node holds one of their volumes that Kubernetes does not attach. It fails open.
//
// Objects: new pods that use claims, in namespaces that opt in.
func (f *Fencing) workloadPods() admission.Rule[mutators.WorkloadPod] {
	return admission.Rule[mutators.WorkloadPod]{
		Kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		Decide: func(ctx context.Context, r *admission.Request[mutators.WorkloadPod]) (admission.Decision, error) {
			var held []mutators.HeldClaim
			unattached := false
			for _, claim := range r.Object.Claims() {
				h, may, err := f.heldClaim(ctx, r.Namespace, claim)
				if err != nil {
					return admission.Decision{}, err
				}
				unattached = unattached || may
				if h != nil {
					held = append(held, *h)
				}
			}
			return admission.FromMutation(mutators.GateWorkloadPod(*r.Object, held, unattached)), nil
		},
	}
}

// heldClaim is the lost node that holds the volume of a claim, or nil. unattached: Kubernetes does not attach the volume,
// or the claim has no volume yet.
//
// heldClaim reads the nodes' records and not other pods of the claim: the webhook may not read pods, and the controller
// records a pod's volumes moments after the pod got its node.
func (f *Fencing) heldClaim(ctx context.Context, namespace, claim string) (held *mutators.HeldClaim, unattached bool, err error) {
	volume, err := f.Live.BoundVolume(ctx, namespace, claim)
	if err != nil || volume == nil {
		return nil, true, err
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
