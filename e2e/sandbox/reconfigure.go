package sandbox

import (
	"context"
	"errors"
)

// Reconfigure installs Fairlead with other Networks and Windows, and starts its
// processes again: they read their configuration once.
func (s *Sandbox) Reconfigure(ctx context.Context, networks, windows string) error {
	s.Networks, s.Windows = networks, windows
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
