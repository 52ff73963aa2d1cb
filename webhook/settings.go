package webhook

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/validators"
)

var settingKinds = []metav1.GroupVersionKind{
	{Group: "longhorn.io", Version: "v1beta2", Kind: "Setting"},
	{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Setting"},
}

func (p Profile) settings(missing config.Strictness) rule[validators.Setting] {
	return rule[validators.Setting]{
		name:    p.Name + "/" + entrySettings,
		deletes: true,
		kinds:   settingKinds,
		decide: func(ctx context.Context, r *Request[validators.Setting]) (Decision, error) {
			if r.Namespace != p.Namespace {
				return Decision{Outcome: outcomeAllowed, Reason: validators.ReasonValid}, nil
			}
			end, err := p.Live.Turn(ctx)
			if err != nil {
				return cannotJudge(err), nil
			}
			defer end()
			facts, err := p.settingFacts(ctx, r, missing)
			if err != nil {
				return cannotJudge(err), nil
			}
			resource := schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}
			if r.Operation == admissionv1.Delete {
				// A deletion of many at once has no name in the request.
				name := r.OldObject.Metadata.Name
				return fromVerdict(validators.ValidateSettingDeletion(name, facts), resource, name), nil
			}
			return fromVerdict(validators.ValidateSetting(*r.Object, r.OldObject, facts), resource, r.Name), nil
		},
	}
}

// settingFacts reads live what a change of a setting is judged by.
func (p Profile) settingFacts(ctx context.Context, r *Request[validators.Setting], missing config.Strictness) (validators.SettingFacts, error) {
	facts := validators.SettingFacts{
		Own:           r.Kind.Group == v1alpha1.GroupVersion.Group,
		MissingPolicy: validators.Strictness(missing),
		Applies:       p.Duties.Settings == config.Apply,
	}
	var err error
	if facts.Facts, err = p.Live.Announcing().Facts(ctx, cluster.FactsOptions{Now: time.Now(), Policy: p.Policy}); err != nil {
		return facts, err
	}
	if facts.PriorityClasses, _, err = p.Live.PriorityClasses(ctx); err != nil {
		return facts, err
	}
	// A cluster without Multus has no such kind; values are judged all the same.
	facts.Networks, err = p.Live.Networks(ctx)
	if facts.NetworksKnown = err == nil; facts.NetworksKnown {
		facts.Existing.Networks = rollout.NetworksThere(facts.Networks)
	}
	return facts, nil
}

// MayOverrideFence asks the API server whether a user may override the gates of a node.
func MayOverrideFence(c client.Client) func(context.Context, authenticationv1.UserInfo, string) (bool, error) {
	return may(c, authorizationv1.ResourceAttributes{Verb: fence.OverrideVerb, Group: v1alpha1.GroupVersion.Group, Resource: "nodefences"})
}

// may asks whether a user may do something with an object of a name.
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
			return false, fmt.Errorf("asking whether %s may override gates: %w", user.Username, err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	}
}
