package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// runbook types the commands of docs/fencing*.md, in a shell, as a new user would.
type runbook struct {
	c *cluster
	// pages are all that is written of fencing.
	pages string
	// tools has kubectl and fairlead.
	tools string
}

func (c *cluster) runbook(t *testing.T) runbook {
	t.Helper()
	files, err := filepath.Glob("../docs/fencing*.md")
	c.must(err)
	reference, err := filepath.Glob("../docs/reference/fencing*.md")
	c.must(err)
	b := runbook{c: c, tools: t.TempDir()}
	for _, file := range append(files, reference...) {
		page, err := os.ReadFile(file)
		c.must(err)
		b.pages += string(page)
	}
	binary, err := filepath.Abs(os.Getenv("FAIRLEAD_BINARY"))
	c.must(err)
	c.must(os.Symlink(binary, filepath.Join(b.tools, "fairlead")))
	c.must(os.Symlink(c.State.Kubectl, filepath.Join(b.tools, "kubectl")))
	return b
}

// types a command as it is documented, with words in place of its capitals, with a user's kubeconfig.
func (b runbook) types(t *testing.T, kubeconfig, command string, words ...string) (string, int) {
	t.Helper()
	if !strings.Contains(b.pages, command) {
		t.Errorf("docs/fencing*.md have no %q", command)
	}
	return b.run(t.Context(), kubeconfig, strings.NewReplacer(words...).Replace(command))
}

func (b runbook) run(ctx context.Context, kubeconfig, command string) (string, int) {
	b.c.t.Helper()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+b.tools+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(b.tools, "cache"))
	cmd.Dir = b.tools
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return string(out), failed.ExitCode()
	}
	b.c.must(err)
	return string(out), 0
}

// TestFencingRunbook goes through docs/fencing.md: the drill, a lost node, its taint, its reboot. Who is on call
// reads with no more than ClusterRole fairlead-fence-viewer.
func TestFencingRunbook(t *testing.T) {
	c, _ := newFencingCluster(t, fencing)
	safe := database{name: "safe", driver: rbd, clusterID: "rook-ceph", nodes: []string{"node-1", "node-2"}}
	node := c.runDatabase(safe)
	c.eventually("its volume is on record", 30*time.Second, func() error {
		record := c.waitPhase(node, v1alpha1.NodeHealthy)
		if !slices.ContainsFunc(record.Status.Volumes, func(v v1alpha1.HeldVolume) bool { return v.PersistentVolume == safe.volume() && !v.Waiting }) {
			return fmt.Errorf("it has %+v", record.Status.Volumes)
		}
		return nil
	})
	b, admin := c.runbook(t), c.State.Kubeconfig
	c.kubectl("create", "serviceaccount", "on-call")
	b.types(t, admin, "kubectl create clusterrolebinding on-call-fences --clusterrole fairlead-fence-viewer --group GROUP", "--group GROUP", "--serviceaccount default:on-call")
	onCall, err := c.ServiceAccountKubeconfig(t.Context(), "default", "on-call", t.TempDir())
	c.must(err)

	out, code := b.types(t, onCall, "fairlead fences drill NODE", "NODE", node)
	for _, words := range []string{"Node " + node + " could be fenced now.", "192.168.50." + strings.TrimPrefix(node, "node-") + "/32", "class rbd", safe.volume()} {
		if code != 0 || !strings.Contains(out, words) {
			t.Errorf("the drill: exit code %d, and it does not say %q:\n%s", code, words, out)
		}
	}
	t.Logf("the drill:\n%s", out)
	c.lose(node)
	c.waitPhase(node, v1alpha1.NodeLost)
	b.says(t, onCall, "fairlead fences", "NotReady")
	b.says(t, onCall, "kubectl get nodefences -o wide", "docs/fencing-reasons.md#notready")
	b.says(t, onCall, "fairlead fences NODE", "kubectl taint nodes "+node+" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", "NODE", node)
	if out, code := b.types(t, onCall, "fairlead fences drill NODE", "NODE", node); code != 1 || !strings.Contains(out, "a drill is for healthy nodes") {
		t.Errorf("a drill of a lost node: exit code %d:\n%s", code, out)
	}
	b.says(t, admin, "kubectl taint nodes NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", "tainted", "NODE", node)
	c.waitPhase(node, v1alpha1.NodeDrained)
	b.says(t, onCall, "kubectl get networkfences -l fairlead.io/node=NODE -o yaml", "fencing operation successful", "NODE", node)
	b.says(t, onCall, "fairlead fences NODE", "reboot the machine", "NODE", node)
	c.waitUp(safe, node, time.Minute)
	c.must(c.SwitchOn(t.Context(), node, true))
	c.waitPhase(node, v1alpha1.NodeReturned)
	b.says(t, admin, "kubectl taint nodes NODE node.kubernetes.io/out-of-service-", "untainted", "NODE", node)
	c.waitPhase(node, v1alpha1.NodeHealthy)
	if out, code := b.types(t, onCall, "fairlead fences drill NODE", "NODE", node); code != 0 {
		t.Errorf("a drill of the node that is back: exit code %d:\n%s", code, out)
	}
}

func (b runbook) says(t *testing.T, kubeconfig, command, words string, replace ...string) {
	t.Helper()
	if out, code := b.types(t, kubeconfig, command, replace...); code != 0 || !strings.Contains(out, words) {
		t.Errorf("%s: exit code %d, and it does not say %q:\n%s", command, code, words, out)
	}
}
