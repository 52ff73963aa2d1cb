package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs the real kubectl as the administrator and returns what it
// prints, standard output and error together, as a user sees it.
func (s *Sandbox) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.State.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.State.Kubeconfig, "KUBECACHEDIR="+filepath.Join(s.Dir, "kubectl-cache"))
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
