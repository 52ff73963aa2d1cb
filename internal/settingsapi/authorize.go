package settingsapi

import (
	"context"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const resource = "settings"

// permission is the RBAC permission that a request needs.
type permission struct{ verb, group, namespace, name string }

// toRead returns the permission on Fairlead's own Settings, which report all settings of the profile.
func toRead(verb string, p Profile, name string) permission {
	return permission{verb, v1alpha1.GroupVersion.Group, p.Namespace, name}
}

func (p permission) String() string {
	text := fmt.Sprintf("%s %s.%s", p.verb, resource, p.group)
	if p.name != "" {
		text += fmt.Sprintf(" %q", p.name)
	}
	return text + " in namespace " + p.namespace
}

// authorized asks the API server whether the caller has the permission. If not, it answers the request.
func (a *api) authorized(w http.ResponseWriter, r *http.Request, p permission) bool {
	c := callerOf(r.Context())
	allowed, err := a.may(r.Context(), c, p)
	if err != nil {
		a.Log.Error("reviewing access", "user", c.Username, "needs", p.String(), "error", err)
		refuse(w, http.StatusBadGateway, metav1.StatusReasonInternalError, "the API server could not be asked for permission; see Fairlead's log")
		return false
	}
	if !allowed {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, fmt.Sprintf("user %q may not %s: have a role with that verb bound to you", c.Username, p))
	}
	return allowed
}

func (a *api) may(ctx context.Context, c caller, p permission) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range c.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := a.Access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: c.Username, Groups: c.Groups, UID: c.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: p.verb, Group: p.group, Resource: resource, Namespace: p.namespace, Name: p.name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("creating a SubjectAccessReview: %w", err)
	}
	return review.Status.Allowed && !review.Status.Denied, nil
}
