//go:build linux

package nodes

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/typed"
)

// pauseLimit of the writer, whose server does not restart, is for a busy machine.
const pauseLimit = 10 * time.Second

// TestInstallUpgradeRemove types the pages that install, upgrade and remove Fairlead while a workload writes to a shared
// volume on the storage network. No release exists: the earlier version is another tag of the image, with the manifests
// of sandbox.Earlier.
func TestInstallUpgradeRemove(t *testing.T) {
	ctx, c := startLonghorn(t)
	networkOn(ctx, t, c)
	must(t, c.CreateClaim(ctx, "steady", "longhorn-hard", "ReadWriteMany"))
	// A write that fails ends the container.
	must(t, c.Run(ctx, Workload{Name: "steady", Claim: "steady", Node: "node-1", Command: "while date +%s >>/data/log; do sleep 0.1; done"}))
	_, err := c.WaitWorkload(ctx, "steady")
	must(t, err)
	earlier, current := c.checkout(t, "earlier", sandbox.Earlier), c.checkout(t, "current", "")
	must(t, inParallel(c.Nodes, func(n *Node) error {
		_, err := n.Run(ctx, "ctr", "--namespace=k8s.io", "images", "tag", "ghcr.io/fairlead-io/fairlead:dev", "registry.test/fairlead:v0.1.0")
		return err
	}))
	running := c.lives(ctx, t)

	for i, folder := range []string{earlier, current, current} {
		page := typed.Nodes[i]
		c.types(ctx, t, folder, page)
		if page.Name != "docs/remove.md" {
			must(t, c.WaitWorking(ctx))
		}
		if now := c.lives(ctx, t); !maps.Equal(now, running) {
			t.Fatalf("after %s these pods run:\n%v\nbefore:\n%v", page.Name, now, running)
		}
		if pause := c.writes(ctx, t, "steady"); pause > pauseLimit {
			t.Errorf("the writer paused for %s before the end of %s", pause, page.Name)
		}
	}

	server := c.shareManager(ctx, t, "steady")
	must(t, c.Client.Delete(ctx, server))
	must(t, eventually.Until(ctx, "another server", workloadTimeout, func() error {
		if now := c.shareManager(ctx, t, "steady"); now.UID == server.UID || !ready(now) {
			return fmt.Errorf("%s on %s is not Ready", now.Name, now.Spec.NodeName)
		}
		return nil
	}))
	t.Logf("the writer paused for %s while its server moved", c.writes(ctx, t, "steady"))
	must(t, c.Run(ctx, Workload{Name: "reader", Claim: "steady", Node: "node-2"}))
	_, err = c.WaitWorkload(ctx, "reader")
	must(t, err)
	c.writes(ctx, t, "reader")
}

// checkout has those parts of a version's checkout that the pages name.
func (c *Cluster) checkout(t *testing.T, version, patches string) string {
	t.Helper()
	folder := filepath.Join(c.Dir, version)
	must(t, os.CopyFS(filepath.Join(folder, "manifests"), os.DirFS(filepath.Join(c.Root, "manifests"))))
	overlay := filepath.Join(folder, "manifests", "overlays", "cert-manager", "kustomization.yaml")
	text, err := os.ReadFile(overlay)
	must(t, err)
	must(t, os.WriteFile(overlay, append(text, patches...), 0o644))
	return folder
}

// prepare defines stand-ins for make and kustomize: the image is on the nodes already.
const prepare = `set -e
make() { test "$1" = image; }
kustomize() {
  image=${4#*=}
  echo "images: [{name: ${4%%=*}, newName: ${image%:*}, newTag: ${image##*:}}]" >>kustomization.yaml
}
`

// types the commands of a page in a version's checkout.
func (c *Cluster) types(ctx context.Context, t *testing.T, folder string, page typed.Page) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Root, page.Name))
	must(t, err)
	commands, err := typed.Commands(string(text))
	must(t, err)
	commands = slices.Insert(commands, 0, typed.Command{Text: page.Before})
	for _, command := range commands {
		bash := exec.CommandContext(ctx, "bash", "-c", prepare+command.Typed())
		bash.Dir = folder
		bash.Env = append(os.Environ(), "KUBECONFIG="+c.State.Kubeconfig, "PATH="+filepath.Dir(c.State.Kubectl)+":"+os.Getenv("PATH"))
		out, err := bash.CombinedOutput()
		t.Logf("%s:%d: %s\n%s", page.Name, command.Line, command.Typed(), out)
		must(t, err)
	}
}

// lives are the UIDs and restart counts of the pods of Longhorn and of workloads.
func (c *Cluster) lives(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, namespace := range []string{Namespace, "default"} {
		var pods corev1.PodList
		must(t, c.Client.List(ctx, &pods, client.InNamespace(namespace)))
		for _, pod := range pods.Items {
			restarts := int32(0)
			for _, container := range pod.Status.ContainerStatuses {
				restarts += container.RestartCount
			}
			found[pod.Name] = fmt.Sprintf("%s, restarted %d times", pod.UID, restarts)
		}
	}
	return found
}

// shareManager is the pod that serves a claim's volume.
func (c *Cluster) shareManager(ctx context.Context, t *testing.T, claim string) *corev1.Pod {
	t.Helper()
	var volume corev1.PersistentVolumeClaim
	must(t, c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: claim}, &volume))
	pod := &corev1.Pod{}
	must(t, client.IgnoreNotFound(c.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: "share-manager-" + volume.Spec.VolumeName}, pod)))
	return pod
}

// writes waits until the log in the volume grows, and returns its longest pause so far. A file that the workload writes
// must not pass the management links.
func (c *Cluster) writes(ctx context.Context, t *testing.T, workload string) time.Duration {
	t.Helper()
	var before map[Link]int64
	var out string
	must(t, eventually.Until(ctx, workload+" to write", workloadTimeout, func() (err error) {
		before = c.traffic(t)
		// A call of a dead mount hangs.
		out, err = c.Shell(ctx, workload, `timeout -s KILL 20 sh -c '
last=$(wc -l </data/log)
until [ "$(wc -l </data/log)" -gt "$last" ]; do sleep 0.1; done
dd if=/dev/urandom of=/data/file bs=1M count=8 conv=fsync 2>/dev/null
'`+" && "+fmt.Sprintf(longestGap, "/data/log"))
		return err
	}))
	pause, err := time.ParseDuration(out + "s")
	must(t, err)
	if management := c.traffic(t)[Management] - before[Management]; management > 4<<20 {
		t.Errorf("the management links carried %d bytes while %s wrote 8 MB", management, workload)
	}
	return pause
}
