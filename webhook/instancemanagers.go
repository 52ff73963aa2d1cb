package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/validators"
)

// instanceManagerDeletions keeps the storage system from restarting what serves an attached volume. It fails open.
func (p Profile) instanceManagerDeletions() rule[validators.InstanceManagerPod] {
	return rule[validators.InstanceManagerPod]{
		name:    p.Name + "/" + entryInstanceManagerDeletions,
		deletes: true,
		kinds:   []metav1.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
		decide: func(ctx context.Context, r *Request[validators.InstanceManagerPod]) (Decision, error) {
			pod := r.OldObject
			if pod == nil { // it is never registered for anything but deletions
				return allowed("not a deletion"), nil
			}
			var facts validators.InstanceManagerFacts
			if pod.Works() {
				var err error
				if facts, err = p.Live.InstanceManagerFacts(ctx, pod.Metadata.Name, pod.Spec.NodeName); err != nil {
					return Decision{}, err
				}
			}
			v := validators.ValidateInstanceManagerDeletion(*pod, facts)
			if len(v.Problems) > 0 {
				return forbidden(r.Resource, pod.Metadata.Name, field.NewPath("metadata", "name"), v.Reason, v.Problems[0].Detail), nil
			}
			return allowed(v.Reason), nil
		},
	}
}
