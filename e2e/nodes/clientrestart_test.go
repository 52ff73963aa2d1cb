//go:build linux

package nodes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// clientRestart ends the network of a CSI plugin pod, and with it the shared volumes that are mounted on its node. First the
// pod's sandbox dies, which Longhorn does not notice; then the pod is deleted, and Longhorn deletes the workload's pod itself.
func clientRestart(ctx context.Context, t *testing.T, c *Cluster) {
	networkOn(ctx, t, c)
	node := c.Nodes[0]
	must(t, c.CreateClaim(ctx, "remounted", "longhorn-hard", "ReadWriteMany"))
	must(t, c.CreateClaim(ctx, "local", "longhorn", "ReadWriteOnce"))
	must(t, c.Run(ctx, Workload{Name: "remounted", Claim: "remounted", Node: node.Name}))
	must(t, c.Run(ctx, Workload{Name: "elsewhere", Claim: "remounted", Node: "node-2"}))
	must(t, c.Run(ctx, Workload{Name: "local", Claim: "local", Node: node.Name}))
	pod, err := c.WaitWorkload(ctx, "remounted")
	must(t, err)
	healthy := map[string]*corev1.Pod{}
	for _, name := range []string{"elsewhere", "local"} {
		healthy[name], err = c.WaitWorkload(ctx, name)
		must(t, err)
	}
	for _, way := range []struct {
		name string
		end  func(plugin *corev1.Pod) error
		by   string
	}{
		{"sandbox", func(plugin *corev1.Pod) error { return node.killSandbox(ctx, plugin) }, "fairlead-controller"},
		{"pod", func(plugin *corev1.Pod) error { return c.Client.Delete(ctx, plugin) }, "longhorn-service-account"},
	} {
		lastWrite := c.writeUntilEnd(ctx, pod)
		must(t, eventually.Until(ctx, "a write of "+pod.Name, workloadTimeout, func() error {
			_, err := c.Shell(ctx, "elsewhere", "ls /data/"+pod.Name)
			return err
		}))
		plugin, err := c.pluginOn(ctx, node)
		must(t, err)
		must(t, way.end(plugin))
		must(t, eventually.Until(ctx, "pod "+pod.Name+" to be gone", workloadTimeout, func() error { return c.gone(ctx, pod) }))
		successor, err := c.WaitWorkload(ctx, "remounted")
		must(t, err)
		_, err = c.Shell(ctx, "remounted", "echo "+way.name+" > /data/file")
		must(t, err)
		read, err := c.Shell(ctx, "elsewhere", "cat /data/file")
		must(t, err)
		if read != way.name {
			t.Errorf("%s: the other node reads %q", way.name, read)
		}
		restarts, err := c.restarts(pod)
		must(t, err)
		if len(restarts) != 1 || restarts[0].Writer() != way.by {
			t.Fatalf("%s: the pod was restarted by %v, want once by %s", way.name, restarts, way.by)
		}
		last, err := lastWrite()
		must(t, err)
		t.Logf("%s: the last write returned %s before the restart", way.name, restarts[0].At.Sub(last).Round(time.Second))
		// Through a mount that is alive, a pod writes until it ends, two seconds later.
		if way.name == "sandbox" && last.After(restarts[0].At) {
			t.Errorf("%s: a write returned at %s, and the pod was restarted at %s: its mount was alive", way.name, last, restarts[0].At)
		}
		mounts, err := node.nfsMountsAt("/var/lib/kubelet/")
		must(t, err)
		if len(mounts) != 2 {
			t.Errorf("%s: want one mount for the node and one for the pod, got %v", way.name, mounts)
		}
		pod = successor
	}
	for name, before := range healthy {
		_, err := c.Shell(ctx, name, "date > /data/"+name)
		must(t, err)
		now, err := c.WaitWorkload(ctx, name)
		must(t, err)
		if now.UID != before.UID || now.Status.ContainerStatuses[0].RestartCount > 0 {
			t.Errorf("workload %s was restarted", name)
		}
	}
	if restarts, err := c.restarts(pod); err != nil || len(restarts) > 0 {
		t.Errorf("the last pod was restarted by %v, %v", restarts, err)
	}
	must(t, c.Remove(ctx, "remounted", "elsewhere", "local"))
	must(t, eventually.Until(ctx, "nothing to be left on "+node.Name, workloadTimeout, func() error { return node.cleanOfNFS(ctx) }))
}

// pluginOn is the CSI plugin pod of a node.
func (c *Cluster) pluginOn(ctx context.Context, n *Node) (*corev1.Pod, error) {
	pods, err := c.PodsWith(ctx, Namespace, "app", "longhorn-csi-plugin")
	if err != nil {
		return nil, err
	}
	for i := range pods {
		if pods[i].Spec.NodeName == n.Name && ready(&pods[i]) {
			return &pods[i], nil
		}
	}
	return nil, fmt.Errorf("no CSI plugin pod is Ready on %s", n.Name)
}

// killSandbox kills the process that holds the namespaces of a pod.
func (n *Node) killSandbox(ctx context.Context, pod *corev1.Pod) error {
	filter := fmt.Sprintf(`labels."io.kubernetes.pod.uid"==%q,labels."io.cri-containerd.kind"==sandbox`, pod.UID)
	ids, err := n.Run(ctx, "ctr", "--namespace=k8s.io", "containers", "ls", "--quiet", filter)
	if err != nil {
		return err
	}
	_, err = n.Run(ctx, "ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=SIGKILL", strings.TrimSpace(ids))
	return err
}

func (c *Cluster) gone(ctx context.Context, pod *corev1.Pod) error {
	var now corev1.Pod
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("its phase is %s, deleted %v", now.Status.Phase, now.DeletionTimestamp)
}

// writeUntilEnd writes to the volume until the pod ends. The result returns the time of the last finished write.
func (c *Cluster) writeUntilEnd(ctx context.Context, pod *corev1.Pod) func() (time.Time, error) {
	const write = `while dd if=/dev/zero of=/data/$HOSTNAME bs=4k count=1 conv=fsync 2>/dev/null && date +%s; do :; done`
	output := make(chan string)
	go func() {
		out, _ := c.Kubectl(ctx, "", "exec", pod.Name, "--", "sh", "-c", write) // fails when the pod ends
		output <- out
	}()
	return func() (time.Time, error) {
		var last int64
		for line := range strings.Lines(<-output) {
			if second, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil {
				last = second
			}
		}
		if last == 0 {
			return time.Time{}, fmt.Errorf("pod %s wrote nothing", pod.Name)
		}
		return time.Unix(last, 0), nil
	}
}

// restarts are the requests to end a pod, except the kubelet's own deletion at the end.
func (c *Cluster) restarts(pod *corev1.Pod) ([]sandbox.Write, error) {
	writes, err := c.ReadWrites()
	return slices.DeleteFunc(slices.Clone(writes), func(w sandbox.Write) bool {
		ends := w.Resource == "pods/eviction" || w.Resource == "pods" && w.Verb == "delete"
		return !ends || w.Namespace != pod.Namespace || w.Name != pod.Name || w.Code >= 300 || strings.HasPrefix(w.User, "system:node:")
	}), err
}

// cleanOfNFS fails if a node has an NFS mount or a process that waits for a dead server.
func (n *Node) cleanOfNFS(ctx context.Context) error {
	mounts, err := n.nfsMountsAt("/var/lib/kubelet/")
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("mounted: %v", mounts)
	}
	// Only the helper's agent may be left, and no process waits for a dead server.
	_, err = n.Run(ctx, "sh", "-c", `! grep -lz mount.nfs /proc/[0-9]*/cmdline 2>/dev/null && ! grep -l "^State:.D" /proc/[0-9]*/status 2>/dev/null`)
	return err
}
