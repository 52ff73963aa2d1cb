package sandbox

import (
	"context"
	"errors"
)

// Reconfigure installs Fairlead with other Networks and Windows, and starts its
// processes again: they read their configuration once.
func (s *Sandbox) Reconfigure(ctx context.Context, networks, windows string) error {
	s.Networks, s.Windows = networks, windows
	return s.reinstall(ctx)
}

// Repatch installs Fairlead with these kustomize patches on top, as another version has
// other manifests, and starts its processes again.
func (s *Sandbox) Repatch(ctx context.Context, patches string) error {
	s.patches = patches
	return s.reinstall(ctx)
}

func (s *Sandbox) reinstall(ctx context.Context) error {
	if err := s.apply(ctx); err != nil {
		return err
	}
	var problems []error
	for _, r := range s.replicas {
		if r.Running() {
			problems = append(problems, r.Stop())
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	s.replicas = nil
	return s.RunFairlead(ctx, 1, 1)
}

// Earlier patches the manifests to those of a version that did not report blockers of settings yet, and had a right less.
const Earlier = `  - target: {kind: CustomResourceDefinition, name: settings.fairlead.io}
    patch: '[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/blockers"}]'
  - target: {kind: ClusterRole, name: fairlead-planner}
    patch: '[{"op": "remove", "path": "/rules/0"}]'
`
