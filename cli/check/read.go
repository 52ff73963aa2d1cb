package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/installation"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// read gathers the facts.
func read(ctx context.Context, t cli.Target, kubernetes string, now time.Time) (facts, error) {
	live, c := t.Live, t.Configuration
	if t.Longhorn != nil {
		copied := *c
		copied.Longhorn, c = t.Longhorn, &copied // in the namespace of --namespace
	}
	f := facts{kubernetes: kubernetes, kinds: map[schema.GroupKind]bool{}, configuration: c}
	kinds := []schema.GroupKind{certificates, addonsNodes, reads.NetworkKind.GroupKind()}
	for _, kind := range ownKinds {
		kinds = append(kinds, schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: kind})
	}
	for _, kind := range kinds {
		_, err := live.RESTMapper().RESTMapping(kind)
		if err != nil && !meta.IsNoMatchError(err) {
			return f, fmt.Errorf("looking for kind %s: %w", kind, err)
		}
		f.kinds[kind] = err == nil
	}
	// Before an installation no role of Fairlead exists, so a missing right is a finding, and no error.
	readable := func(what string, err error) error {
		if apierrors.IsForbidden(err) {
			f.unread = append(f.unread, fmt.Sprintf("%s: %v", what, err))
			return nil
		}
		return err
	}
	networks, err := reads.Networks(ctx, live)
	if err := readable("networks", err); err != nil {
		return f, err
	}
	for network := range networks {
		f.networks = append(f.networks, network.String())
	}
	slices.Sort(f.networks)
	if t.Longhorn != nil {
		var own map[catalog.Name]string
		own, f.values, err = t.Reader.Values(ctx)
		if err := readable("settings", err); err != nil {
			return f, err
		}
		if network, err := catalog.SharedVolumeNetwork(catalog.Resolve(own, f.values), t.Longhorn.Names()); err == nil {
			f.networkProblem = catalog.NetworkProblem(network.Network, networks)
			if f.networkDoubt, err = networkDoubt(ctx, t, network.Network, now); err != nil {
				f.networkDoubt = "" // without the right to read Longhorn's objects, which is said elsewhere
			}
		}
	}
	if c.Fencing.Holds() {
		f.unattached, err = fencingreads.Unattached(ctx, live, c.Fencing.Protects)
		if err := readable("CSIDrivers", err); err != nil {
			return f, err
		}
	}
	f.installation, err = installation.Read(ctx, live, now)
	if err := readable("Fairlead's own objects", err); err != nil {
		return f, err
	}
	if f.installation.Missing {
		f.denied, err = denied(ctx, live)
	}
	return f, err
}

// created are kinds that an installation creates.
var created = []authorizationv1.ResourceAttributes{
	{Resource: "namespaces"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	{Group: "apps", Resource: "deployments", Namespace: registration.Namespace},
}

// denied asks the API server what this user may not create.
func denied(ctx context.Context, live client.Client) (names []string, err error) {
	for _, a := range created {
		a.Verb = "create"
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		if err := live.Create(ctx, review); err != nil {
			return nil, errors.Join(errors.New("asking for your rights"), err)
		}
		if !review.Status.Allowed {
			names = append(names, a.Resource)
		}
	}
	return names, nil
}

// networkDoubt says why pods on the network may get no address of their own.
func networkDoubt(ctx context.Context, t cli.Target, network multus.Network, now time.Time) (string, error) {
	facts, _, err := t.Reader.Rollout(ctx, now)
	return facts.Doubt(network), err
}
