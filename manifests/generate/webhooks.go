package main

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/storage/builtin"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// entries are those of one part that can be installed or left out.
type entries struct {
	mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	validating *admissionregistrationv1.ValidatingWebhookConfiguration
}

// webhooks are patches of the same two objects: kustomize and the chart add up the entries.
type webhooks struct {
	longhorn, fencing, gates, nfs entries
	policies                      []any
	rights                        map[string][]any
}

func newWebhooks() webhooks {
	var w webhooks
	w.longhorn.mutating, w.longhorn.validating = registration.Configurations(registration.Entries(builtin.Profiles()))
	// Gates of pods are opt-in: who gives them must be able to take them away.
	fencing := registration.FencingEntries(profiles.All())
	gates := slices.IndexFunc(fencing, func(e registration.Entry) bool { return e.Path == registration.WorkloadPodsPath })
	w.gates.mutating, _ = registration.Configurations(fencing[gates : gates+1])
	w.fencing.mutating, w.fencing.validating = registration.Configurations(slices.Delete(fencing, gates, gates+1))
	w.nfs.mutating, w.nfs.validating = registration.Configurations(registration.NFSEntries(registration.NFSDrivers()))
	for _, p := range registration.FencingPolicies(profiles.All()) {
		w.policies = append(w.policies, p.Policy, p.Binding)
	}
	// By the component that has the right which a policy bounds.
	w.rights = map[string][]any{}
	for component, p := range map[string]registration.Policy{
		"base": registration.PodRights(), "components/fencing-tainting": registration.NodeRights(),
		"components/csi-controller": registration.ServiceRights(), "components/nfs": registration.VolumeRights(), "components/nfs-node-annotations": registration.NodeAnnotationRights(),
	} {
		w.rights[component] = []any{p.Policy, p.Binding}
	}
	return w
}
