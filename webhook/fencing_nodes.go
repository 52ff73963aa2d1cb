package webhook

import (
	"context"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
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
// rebooted. It warns the user who deletes the Node of a working machine. It fails open.
//
// Objects: Nodes whose out-of-service taint is added or removed, or that are deleted.
func (f *Fencing) nodes() admission.Rule[node] {
	return admission.Rule[node]{
		Deletes: true,
		Kinds:   []metav1.GroupVersionKind{{Version: "v1", Kind: "Node"}},
		Decide: func(ctx context.Context, r *admission.Request[node]) (admission.Decision, error) {
			if !slices.ContainsFunc(f.Profiles, func(p config.FencingProfile) bool { return p.Mode != config.Off }) {
				return admission.Allowed(reasonNotProtected), nil
			}
			if r.Operation == admissionv1.Delete {
				return f.nodeDeletion(ctx, r.OldObject.Metadata.Name)
			}
			is, was := r.Object.outOfService(), r.OldObject.outOfService()
			if is == was {
				return admission.Allowed("taint unchanged"), nil
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

// nodeDeletion is allowed: the volumes of a machine without a Node are held, and the machine is fenced unless it registers again.
func (f *Fencing) nodeDeletion(ctx context.Context, name string) (admission.Decision, error) {
	d := admission.Allowed("a Node may be deleted")
	node, record, err := f.Live.Present(ctx, name)
	if err != nil {
		return admission.Decision{}, err
	}
	if warning := fence.DeletesWorkingNode(node, record); warning != "" {
		d.Warnings = []string{"fairlead: " + warning}
	}
	return d, nil
}

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
