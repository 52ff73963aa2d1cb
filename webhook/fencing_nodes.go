package webhook

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// node is what is read of a Node whose taints change.
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

// nodes refuses to give the out-of-service taint to a Ready node, and to take it
// away from one that is fenced and has not booted since. It fails open.
//
// Objects: Nodes whose out-of-service taint comes or goes.
func (f *Fencing) nodes() rule[node] {
	return rule[node]{
		name:  entryNodes,
		kinds: []metav1.GroupVersionKind{{Version: "v1", Kind: "Node"}},
		decide: func(ctx context.Context, r *Request[node]) (Decision, error) {
			is, was := r.Object.outOfService(), r.OldObject.outOfService()
			if is == was {
				return allowed("taint is as it was"), nil
			}
			if !slices.ContainsFunc(f.Profiles, func(p config.FencingProfile) bool { return p.Mode != config.Off }) {
				return allowed(reasonNotProtected), nil
			}
			node, record, err := f.Live.Present(ctx, r.Object.Metadata.Name)
			if err != nil {
				return Decision{}, err
			}
			refusal := fence.RemoveTaint(node, record)
			if is {
				refusal = fence.AddTaint(node, record)
			}
			if refusal != nil {
				return forbidden(r.Resource, r.Object.Metadata.Name, field.NewPath("spec", "taints"), refusal.Reason, refusal.Message), nil
			}
			reason := "taint may go"
			if is {
				reason = "taint may come"
			}
			return allowed(reason), nil
		},
	}
}
