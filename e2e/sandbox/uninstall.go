package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
)

// Uninstall ends Fairlead and deletes what Install has applied, as docs/remove.md
// says. What is to be done before is left to the caller.
func (s *Sandbox) Uninstall(ctx context.Context) error {
	out, err := s.Kubectl(ctx, "", "delete", "--ignore-not-found", "-k", filepath.Join(s.Dir, "overlay"))
	if err != nil {
		err = fmt.Errorf("removing Fairlead: %w\n%s", err, out)
	}
	problems := []error{err}
	for _, r := range s.replicas {
		problems = append(problems, r.Kill())
	}
	problems = append(problems, s.forward.Close())
	s.replicas, s.forward, s.overlay = nil, nil, ""
	return errors.Join(problems...)
}
