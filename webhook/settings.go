package webhook

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/validators"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

var settingKinds = []metav1.GroupVersionKind{
	metav1.GroupVersionKind(longhorn.GroupVersion.WithKind("Setting")),
	metav1.GroupVersionKind(v1alpha1.GroupVersion.WithKind("Setting")),
}

func (p Profile) settings(missing validators.Strictness) admission.Rule[validators.Setting] {
	read := lists.NewShared(p.settingFacts)
	return admission.Rule[validators.Setting]{
		Deletes: true,
		Kinds:   settingKinds,
		Decide: func(ctx context.Context, r *admission.Request[validators.Setting]) (admission.Decision, error) {
			if r.Namespace != p.Namespace || !validators.JudgesSetting(r.Object, r.OldObject, isOwn(r.Kind)) {
				return admission.Allowed(validators.ReasonNotJudged), nil
			}
			facts, err := read.Get(ctx)
			if err != nil {
				return admission.CannotJudge(err), nil
			}
			facts.Own, facts.MissingPolicy = isOwn(r.Kind), missing
			if r.Operation == admissionv1.Delete {
				// A deletion of many at once has no name in the request.
				name := r.OldObject.Metadata.Name
				return admission.FromVerdict(validators.ValidateSettingDeletion(name, facts), r.Resource, name), nil
			}
			return admission.FromVerdict(validators.ValidateSetting(*r.Object, r.OldObject, facts), r.Resource, r.Name), nil
		},
	}
}

// isOwn reports whether a kind of settings is Fairlead's own, not the storage system's.
func isOwn(kind metav1.GroupVersionKind) bool { return kind.Group == v1alpha1.GroupVersion.Group }

// settingFacts reads live what a change of any setting is judged by.
func (p Profile) settingFacts(ctx context.Context) (validators.SettingFacts, error) {
	read, err := p.Live.Facts(ctx, cluster.FactsOptions{Now: time.Now(), Policy: p.Policy, AsReported: true})
	if err != nil {
		return validators.SettingFacts{}, err
	}
	facts := p.Live.SettingFacts(ctx, read)
	facts.Applies, facts.OmitEffect = p.Duties.Settings == config.Apply, p.OmitEffect
	return facts, nil
}

// MayOverrideFence asks the API server whether a user may override the gates of a node.
func MayOverrideFence(c client.Client) func(context.Context, authenticationv1.UserInfo, string) (bool, error) {
	return may(c, authorizationv1.ResourceAttributes{Verb: fence.OverrideVerb, Group: v1alpha1.GroupVersion.Group, Resource: "nodefences"})
}

// may asks whether a user may do something with a named object.
func may(c client.Client, what authorizationv1.ResourceAttributes) func(context.Context, authenticationv1.UserInfo, string) (bool, error) {
	return func(ctx context.Context, user authenticationv1.UserInfo, name string) (bool, error) {
		extra := map[string]authorizationv1.ExtraValue{}
		for key, values := range user.Extra {
			extra[key] = authorizationv1.ExtraValue(values)
		}
		what := what
		what.Name = name
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra, ResourceAttributes: &what,
		}}
		if err := c.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking whether user %s may override gates: %w", user.Username, err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	}
}
