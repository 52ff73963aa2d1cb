package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// runbook runs commands of docs/fencing*.md in a shell.
type runbook struct {
	*cluster
	pages string // all pages about fencing
	tools string // the folder with kubectl and fairlead
}

func (c *cluster) runbook() runbook {
	c.t.Helper()
	b := runbook{cluster: c, tools: c.t.TempDir()}
	for _, pattern := range []string{"../docs/fencing*.md", "../docs/reference/fencing*.md"} {
		files, err := filepath.Glob(pattern)
		c.must(err)
		for _, file := range files {
			page, err := os.ReadFile(file)
			c.must(err)
			b.pages += string(page)
		}
	}
	binary, err := filepath.Abs(os.Getenv("FAIRLEAD_BINARY"))
	c.must(err)
	c.must(os.Symlink(binary, filepath.Join(b.tools, "fairlead")))
	c.must(os.Symlink(c.State.Kubectl, filepath.Join(b.tools, "kubectl")))
	return b
}

// types runs a documented command with words in place of its capitals. It wants an exit code and words in the output.
func (b runbook) types(kubeconfig, command string, replace []string, code int, words ...string) {
	b.t.Helper()
	if !strings.Contains(b.pages, command) {
		b.t.Errorf("docs/fencing*.md have no %q", command)
	}
	out, got := b.output(b.tools, kubeconfig, "sh", "-c", strings.NewReplacer(replace...).Replace(command))
	if err := lacks(out, words...); got != code || err != nil {
		b.t.Errorf("%s: exit code %d, want %d: %v\n%s", command, got, code, err, out)
	}
}

// output runs a program and returns its output and its exit code.
func (c *cluster) output(tools, kubeconfig, program string, args ...string) (string, int) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(tools, "cache"))
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return string(out), failed.ExitCode()
	}
	c.must(err)
	return string(out), 0
}

// followRunbook goes through the pages: the drill, a lost node, its taint, its reboot. The user on call
// reads with ClusterRole fairlead-fence-viewer alone.
func (c *cluster) followRunbook(t *testing.T, d database) {
	node := c.waitUp(d, "", time.Minute)
	c.waitRecorded(node, d)
	b, admin := c.runbook(), c.State.Kubeconfig
	c.kubectl("create", "serviceaccount", "on-call")
	b.types(admin, "kubectl create clusterrolebinding on-call-fences --clusterrole fairlead-fence-viewer --group GROUP", []string{"--group GROUP", "--serviceaccount default:on-call"}, 0)
	onCall, err := c.ServiceAccountKubeconfig(t.Context(), "default", "on-call", t.TempDir())
	c.must(err)
	const drill, show = "fairlead fences drill NODE", "fairlead fences NODE"
	named := []string{"NODE", node}

	b.types(onCall, drill, named, 0, "Node "+node+" could be fenced now.", "192.168.50."+strings.TrimPrefix(node, "node-")+"/32", "class rbd", d.volume())
	c.lose(node)
	c.waitPhase(node, v1alpha1.NodeLost)
	b.types(onCall, "fairlead fences", nil, 2, "NotReady")
	b.types(onCall, "kubectl get nodefences -o wide", nil, 0, "docs/fencing.md#notready")
	b.types(onCall, show, named, 2, "kubectl taint nodes "+node+" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	b.types(onCall, drill, named, 1, "a drill is for healthy nodes")
	b.types(admin, "kubectl taint nodes NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", named, 0, "tainted")
	c.waitPhase(node, v1alpha1.NodeDrained)
	b.types(onCall, "kubectl get networkfences -l fairlead.io/node=NODE -o yaml", named, 0, "fencing operation successful")
	b.types(onCall, show, named, 2, "reboot the machine")
	c.waitUp(d, node, time.Minute)
	c.must(c.SwitchOn(t.Context(), node, true))
	c.waitPhase(node, v1alpha1.NodeReturned)
	b.types(admin, "kubectl taint nodes NODE node.kubernetes.io/out-of-service-", named, 0, "untainted")
	c.waitPhase(node, v1alpha1.NodeHealthy)
	b.types(onCall, drill, named, 0)
}
