package webhook

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
)

var nodeFenceKinds = []metav1.GroupVersionKind{{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "NodeFence"}}

func nodeFenceOverrides() rule[mutators.NodeFence] {
	return rule[mutators.NodeFence]{
		name:  entryNodeFenceOverrides,
		kinds: nodeFenceKinds,
		decide: func(_ context.Context, r *Request[mutators.NodeFence]) (Decision, error) {
			facts := mutators.OverrideFacts{User: r.UserInfo.Username, Now: time.Now()}
			return fromMutation(mutators.RecordNodeFenceOverride(*r.Object, r.OldObject, facts)), nil
		},
	}
}

func (f *Fencing) nodeFences() rule[validators.NodeFence] {
	return rule[validators.NodeFence]{
		name:    entryNodeFences,
		deletes: true,
		kinds:   nodeFenceKinds,
		decide: func(ctx context.Context, r *Request[validators.NodeFence]) (Decision, error) {
			resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
			if r.Operation == admissionv1.Delete {
				return fromVerdict(validators.ValidateNodeFenceDeletion(*r.OldObject), resource, r.OldObject.Metadata.Name), nil
			}
			facts := validators.NodeFenceFacts{User: r.UserInfo.Username, Controller: r.UserInfo.Username == controllerUser}
			var err error
			if facts.MayOverride, err = f.MayOverride(ctx, r.UserInfo, r.Object.Metadata.Name); err != nil {
				return cannotJudge(err), nil
			}
			return fromVerdict(validators.ValidateNodeFence(*r.Object, r.OldObject, facts), resource, r.Object.Metadata.Name), nil
		},
	}
}
