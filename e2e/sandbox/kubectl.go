package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Kubectl runs the real kubectl as the administrator and returns what it
// prints, standard output and error together, as a user sees it. One that waits
// for what never comes is ended after a while.
func (s *Sandbox) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 4*time.Minute, errors.New("it did not end within four minutes"))
	defer cancel()
	cmd := exec.CommandContext(ctx, s.State.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.State.Kubeconfig, "KUBECACHEDIR="+filepath.Join(s.Dir, "kubectl-cache"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
