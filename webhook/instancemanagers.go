package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// instanceManagerDeletions keeps the storage system from deleting an instance manager that serves an attached volume. It
// fails open.
func (p Profile) instanceManagerDeletions() admission.Rule[validators.InstanceManagerPod] {
	return admission.Rule[validators.InstanceManagerPod]{
		Deletes: true,
		Kinds:   []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		Decide: func(ctx context.Context, r *admission.Request[validators.InstanceManagerPod]) (admission.Decision, error) {
			pod := r.OldObject
			if pod == nil { // the entry is only for deletions
				return admission.Allowed("not a deletion"), nil
			}
			var facts validators.InstanceManagerFacts
			if pod.IsReady() {
				var err error
				if facts, err = p.Live.InstanceManagerFacts(ctx, pod.Metadata.Name, pod.Spec.NodeName); err != nil {
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
