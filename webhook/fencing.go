package webhook

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// Fencing has what the rules of fencing need.
type Fencing struct {
	config.Fencing
	// Live reads from the API server.
	Live *fencingreads.HolderReader
	// MayOverride asks the API server whether a user may override the gates of a node.
	MayOverride func(ctx context.Context, user authenticationv1.UserInfo, node string) (bool, error)
	// Draining reports whether the server is draining: no request waits then.
	Draining func() bool

	// waits has a place for each request that may wait for a fence.
	waits chan struct{}
}

// maxWaits bounds the waiting requests: each costs a connection and a few reads a second.
const maxWaits = 64

// Reasons why a rule allows an object.
const (
	reasonNotProtected = "driver is not protected"
	reasonNotHeld      = "no lost node holds its volumes"
)

// protects reports whether volumes of a driver are protected.
func (f *Fencing) protects(driver string) bool {
	_, protected := f.Policy().Storages(driver)
	return protected
}

// MayOverrideFence asks the API server whether a user may override the gates of a node.
func MayOverrideFence(c client.Client) func(context.Context, authenticationv1.UserInfo, string) (bool, error) {
	return func(ctx context.Context, user authenticationv1.UserInfo, node string) (bool, error) {
		extra := map[string]authorizationv1.ExtraValue{}
		for key, values := range user.Extra {
			extra[key] = authorizationv1.ExtraValue(values)
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: fence.OverrideVerb, Group: v1alpha1.GroupVersion.Group, Resource: "nodefences", Name: node},
		}}
		if err := c.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking whether user %s may override gates: %w", user.Username, err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	}
}
