package webhook

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

var nodeFenceKinds = []metav1.GroupVersionKind{{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "NodeFence"}}

func nodeFenceOverrides() admission.Rule[mutators.NodeFence] {
	return admission.Rule[mutators.NodeFence]{
		Kinds: nodeFenceKinds,
		Decide: func(_ context.Context, r *admission.Request[mutators.NodeFence]) (admission.Decision, error) {
			facts := mutators.OverrideFacts{User: r.UserInfo.Username, Now: time.Now()}
			return admission.FromMutation(mutators.RecordNodeFenceOverride(*r.Object, r.OldObject, facts)), nil
		},
	}
}

func (f *Fencing) nodeFences() admission.Rule[validators.NodeFence] {
	return admission.Rule[validators.NodeFence]{
		Deletes: true,
		Kinds:   nodeFenceKinds,
		Decide: func(ctx context.Context, r *admission.Request[validators.NodeFence]) (admission.Decision, error) {
			if r.Operation == admissionv1.Delete {
				return admission.FromVerdict(validators.ValidateNodeFenceDeletion(*r.OldObject), r.Resource, r.OldObject.Metadata.Name), nil
			}
			facts := validators.NodeFenceFacts{User: r.UserInfo.Username, Controller: r.UserInfo.Username == registration.ControllerUser}
			var err error
			if facts.MayOverride, err = f.MayOverride(ctx, r.UserInfo, r.Object.Metadata.Name); err != nil {
				return admission.CannotJudge(err), nil
			}
			return admission.FromVerdict(validators.ValidateNodeFence(*r.Object, r.OldObject, facts), r.Resource, r.Object.Metadata.Name), nil
		},
	}
}
