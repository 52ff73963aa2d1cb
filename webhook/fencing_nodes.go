package webhook

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

// node is the view of a Node whose taints change.
type node struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Taints []struct {
			Key string `json:"key"`
		} `json:"taints"`
	} `json:"spec"`
}

func (n *node) outOfService() bool {
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(t struct {
		Key string `json:"key"`
	}) bool {
		return t.Key == fence.OutOfServiceTaint
	})
}

// nodes refuses to add the out-of-service taint to a Ready node, and to remove it from a fenced node that has not
// rebooted. It fails open.
//
// Objects: Nodes whose out-of-service taint is added or removed.
func (f *Fencing) nodes() admission.Rule[node] {
	return admission.Rule[node]{
		Kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Node"}},
		Decide: func(ctx context.Context, r *admission.Request[node]) (admission.Decision, error) {
			is, was := r.Object.outOfService(), r.OldObject.outOfService()
			if is == was {
				return admission.Allowed("taint unchanged"), nil
			}
			if !slices.ContainsFunc(f.Profiles, func(p config.FencingProfile) bool { return p.Mode != config.Off }) {
				return admission.Allowed(reasonNotProtected), nil
			}
			node, record, err := f.Live.Present(ctx, r.Object.Metadata.Name)
			if err != nil {
				return admission.Decision{}, err
			}
			refusal := fence.RemoveTaint(node, record)
			if is {
				refusal = fence.AddTaint(node, record)
			}
			if refusal != nil {
				return admission.Forbidden(r.Resource, r.Object.Metadata.Name, field.NewPath("spec", "taints"), refusal.Reason, refusal.Message), nil
			}
			reason := "taint may be removed"
			if is {
				reason = "taint may be added"
			}
			return admission.Allowed(reason), nil
		},
	}
}
