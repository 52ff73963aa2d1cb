//go:build linux

package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// nfsNamespace of servers and NFSServices.
const nfsNamespace = "storage"

// nfsScene is a cluster with NFS servers.
type nfsScene struct {
	*Cluster
	ctx     context.Context
	servers []string
}

// nfsTimeout is for a busy machine.
const nfsTimeout = 3 * time.Minute

func (s *nfsScene) wait(t *testing.T, what string, check func() error) {
	t.Helper()
	must(t, eventually.Until(s.ctx, what, nfsTimeout, check))
}

func (s *nfsScene) kubectl(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	out, err := s.Kubectl(s.ctx, manifest, args...)
	if err != nil {
		t.Fatalf("kubectl %q: %v\n%s", args, err, out)
	}
	return out
}

// install follows docs/nfs.md.
func (s *nfsScene) install(t *testing.T) {
	s.kubectl(t, fmt.Sprintf(nfsNamespaceManifest, nfsNamespace), "apply", "--server-side", "-f", "-")
	for n := range s.Nodes {
		s.startServer(t, fmt.Sprintf("pool-%d", n+1), n, corev1.RestartPolicyNever)
		s.startServer(t, fmt.Sprintf("direct-%d", n+1), n, corev1.RestartPolicyAlways)
	}
	s.startServer(t, "single", 1, corev1.RestartPolicyAlways)
	must(t, s.InstallFairlead(s.ctx, Installation{Overlay: "nfs"}, "fairlead-webhook", "fairlead-csi-controller"))
	s.kubectl(t, "", "-n", "fairlead-csi", "rollout", "status", "daemonset/fairlead-csi-node", "--timeout=2m")
}

const nfsNamespaceManifest = `apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: fairlead-csi-publisher, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fairlead-csi-publisher}
subjects: [{kind: ServiceAccount, name: fairlead-csi-controller, namespace: fairlead-system}]
---
apiVersion: v1
kind: Service
metadata: {name: pool-servers, namespace: %[1]s}
spec: {clusterIP: None, selector: {app: pool}, ports: [{name: nfs, port: 2049}]}
`

const nfsServerManifest = `apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: %[2]s, labels: {app: %[3]s}}
spec:
  nodeName: %[4]s
  restartPolicy: %[5]s
  terminationGracePeriodSeconds: 1
  containers:
    - name: server
      image: %[6]s
      imagePullPolicy: Never
      securityContext: {privileged: true}
      readinessProbe: {tcpSocket: {port: 2049}, periodSeconds: 1}
      volumeMounts: [{name: share, mountPath: %[7]s}]
  volumes: [{name: share, hostPath: {path: %[8]s, type: Directory}}]
`

// startServer starts the pod of a server. By the policy, a killed server is started again at its address, or its pod fails.
func (s *nfsScene) startServer(t *testing.T, name string, node int, policy corev1.RestartPolicy) {
	t.Helper()
	app, _, _ := strings.Cut(name, "-")
	manifest := fmt.Sprintf(nfsServerManifest, name, nfsNamespace, app, s.Nodes[node].Name, policy, nfsServerImage, nfsShare, sharedFolder)
	s.kubectl(t, manifest, "apply", "--server-side", "-f", "-")
	s.servers = append(s.servers, name)
}

// server is the pod of the server with an address.
func (s *nfsScene) server(t *testing.T, address string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	must(t, s.Client.List(s.ctx, &pods, client.InNamespace(nfsNamespace)))
	for i := range pods.Items {
		if pods.Items[i].Status.PodIP == address {
			return &pods.Items[i]
		}
	}
	t.Fatalf("no NFS server has the address %q", address)
	return nil
}

// serverAddress waits until the pod of a server is Ready.
func (s *nfsScene) serverAddress(t *testing.T, name string) (address string) {
	t.Helper()
	s.wait(t, "server "+name, func() error {
		var pod corev1.Pod
		if err := s.Client.Get(s.ctx, client.ObjectKey{Namespace: nfsNamespace, Name: name}, &pod); err != nil {
			return err
		}
		if address = pod.Status.PodIP; !ready(&pod) {
			return fmt.Errorf("it is not Ready: %v", pod.Status.ContainerStatuses)
		}
		return nil
	})
	return address
}

// nfsService waits until all backends of an NFSService are healthy.
func (s *nfsScene) nfsService(t *testing.T, name string) (service v1alpha1.NFSService) {
	t.Helper()
	s.wait(t, "NFSService "+name, func() error {
		if err := s.Client.Get(s.ctx, client.ObjectKey{Namespace: nfsNamespace, Name: name}, &service); err != nil {
			return err
		}
		if s := service.Status; s.BackendCount == 0 || s.HealthyBackends != s.BackendCount {
			return fmt.Errorf("%d of %d backends are healthy: %v", s.HealthyBackends, s.BackendCount, s.Backends)
		}
		return nil
	})
	return service
}

// processes of a program (empty for any) whose file in /proc has a text. The machine sees the processes of its nodes.
func processes(t *testing.T, program, file, text string) (pids []int) {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	for _, folder := range folders {
		command, _ := os.ReadFile(folder + "/cmdline") // it may have ended
		content, _ := os.ReadFile(filepath.Join(folder, file))
		first, _, _ := strings.Cut(string(command), "\x00")
		if (program == "" || filepath.Base(first) == program) && strings.Contains(string(content), text) {
			pid, err := strconv.Atoi(filepath.Base(folder))
			must(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// onlyProcess waits until there is one process, and not the old one.
func (s *nfsScene) onlyProcess(t *testing.T, old int, program, file, text string) (pid int) {
	t.Helper()
	s.wait(t, "one "+program, func() error {
		pids := processes(t, program, file, text)
		if len(pids) != 1 || slices.Contains(pids, old) {
			return fmt.Errorf("there are %v", pids)
		}
		pid = pids[0]
		return nil
	})
	return pid
}

func (s *nfsScene) serverProcess(t *testing.T, pod *corev1.Pod, old int) int {
	t.Helper()
	return s.onlyProcess(t, old, "ganesha.nfsd", "cgroup", "pod"+string(pod.UID))
}

func (s *nfsScene) kubelet(t *testing.T, n *Node, old int) int {
	t.Helper()
	return s.onlyProcess(t, old, "kubelet", "cmdline", "--hostname-override="+n.Name+"\x00")
}

// plugin is the process of Fairlead's node plugin on a node.
func (s *nfsScene) plugin(t *testing.T, n *Node, old int) int {
	t.Helper()
	pods, err := s.PodsWith(s.ctx, "fairlead-csi", "app.kubernetes.io/component", "csi-node")
	must(t, err)
	for _, pod := range pods {
		if pod.Spec.NodeName == n.Name {
			return s.onlyProcess(t, old, "fairlead", "cgroup", "pod"+string(pod.UID))
		}
	}
	t.Fatalf("%s has no node plugin", n.Name)
	return 0
}

// nfsMount is a line of a node's mountinfo.
type nfsMount struct{ ID, Path, Source string }

// nfsMounts of a pod, or of all pods for an empty one, on a node.
func (n *Node) nfsMounts(t *testing.T, pod string) []nfsMount {
	t.Helper()
	mounts, err := n.nfsMountsAt("/var/lib/kubelet/pods/" + pod)
	must(t, err)
	return mounts
}

// nfsMountsAt are the mounts whose paths begin so. A folder that the node shares with the machine shows them a second time.
func (n *Node) nfsMountsAt(path string) (mounts []nfsMount, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", n.Pid()))
	for line := range strings.Lines(string(content)) {
		before, after, _ := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if right[0] == "fuse.nfs" && strings.HasPrefix(left[4], path) {
			mounts = append(mounts, nfsMount{left[0], left[4], right[1]})
		}
	}
	return mounts, err
}
