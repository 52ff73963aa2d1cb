package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
)

const (
	namespace = "longhorn-system"
	netA      = "kube-system/storage-net"
	netB      = "kube-system/backup-net"
)

// TestMain checks what all tests need before the first one starts a cluster.
func TestMain(m *testing.M) {
	for _, name := range []string{"FAIRLEAD_BINARY", "FAIRLEAD_RELEASE_BINARY"} {
		if os.Getenv(name) == "" {
			fmt.Fprintf(os.Stderr, "%s names no binary to test: run make test-e2e\n", name)
			os.Exit(2)
		}
	}
	// Read here, so that go test caches a result for each version of Kubernetes.
	if version := os.Getenv("K8S"); version != "" {
		fmt.Println("on Kubernetes", version)
	}
	os.Exit(m.Run())
}

// cluster is a sandbox in use by one test.
type cluster struct {
	*sandbox.Sandbox
	t *testing.T
}

type options struct {
	overlay       string
	clusterDomain string
	webhooks      int
	controllers   int
	workloads     bool
	// components are those of Longhorn beside the CSI plugin; its manager runs them while the test does.
	components bool
	// longhorn is the version that the stand-in models; empty is the version that it is compared with.
	longhorn string
	// syncs: Longhorn applies its settings itself, as its setting controller does.
	syncs bool
	// duties for Longhorn, as in the configuration, in one line.
	duties string
	// networks of the configuration, in one line without braces.
	networks string
	// fencing as in the configuration, in one line; empty for none.
	fencing string
	// ondat as in the configuration, in one line without its braces.
	ondat string
	// controllerArgs are added to the arguments in the controller's Deployment.
	controllerArgs []string
	// nodes of the cluster, by default 3. fastNodeLoss: Kubernetes notices a lost node within seconds.
	nodes        int
	fastNodeLoss bool
	// auditWrites records all writes.
	auditWrites bool
	// binary is an environment variable that names the binary; by default FAIRLEAD_BINARY.
	binary string
}

// newCluster starts a control plane with Fairlead in it, and stops both at the end of the test.
func newCluster(t *testing.T, o options) *cluster {
	t.Helper()
	if o.overlay == "" {
		o.overlay = sandbox.CertManager
	}
	c := newControlPlane(t, o)
	c.seedLonghorn()
	if o.syncs {
		c.runUntilStopped(c.Longhorn().SyncSettings)
	}
	switch {
	case o.components && o.syncs:
		c.runComponents(c.Longhorn().RestartIdle())
	case o.components:
		c.runComponents(c.Longhorn())
	}
	if o.workloads {
		c.must(c.SeedWorkloads(t.Context()))
	}
	c.must(c.Install(t.Context(), o.overlay))
	c.must(c.RunFairlead(t.Context(), o.webhooks, o.controllers))
	return c
}

// newControlPlane starts an empty control plane, and stops everything in it at the end of the test.
// Clusters mostly wait, so several tests run at a time (CLUSTERS in Makefile).
func newControlPlane(t *testing.T, o options) *cluster {
	t.Helper()
	t.Parallel()
	if o.binary == "" {
		o.binary = "FAIRLEAD_BINARY"
	}
	if o.nodes == 0 {
		o.nodes = 3
	}
	binary := os.Getenv(o.binary)
	out := &output{}
	s, err := sandbox.Start(t.Context(), sandbox.Options{Dir: t.TempDir(), Nodes: o.nodes, FastNodeLoss: o.fastNodeLoss, LonghornVersion: o.longhorn, AuditWrites: o.auditWrites, ClusterDomain: o.clusterDomain, Fairlead: binary, Duties: o.duties, Networks: o.networks, Fencing: o.fencing, Ondat: o.ondat, ControllerArgs: o.controllerArgs, Out: out})
	if err != nil {
		t.Fatalf("starting the control plane: %v\n%s", err, out)
	}
	c := &cluster{Sandbox: s, t: t}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
		if t.Failed() {
			c.showLogs()
		}
	})
	return c
}

// runComponents installs Longhorn's components, and runs them until the returned function is called, or the test ends.
func (c *cluster) runComponents(lh standin.Longhorn) (stop func()) {
	c.t.Helper()
	c.must(lh.InstallComponents(c.t.Context()))
	return c.runUntilStopped(lh.RunComponents)
}

// seedLonghorn installs Longhorn and runs its controllers of shared volumes as long as the test.
func (c *cluster) seedLonghorn() {
	c.t.Helper()
	c.must(c.SeedLonghorn(c.t.Context()))
	c.runUntilStopped(c.Longhorn().RunEndpoints)
	c.runUntilStopped(c.Longhorn().RunShareManagers)
}

// attachNew creates a volume, and attaches it to a node for pods.
func (c *cluster) attachNew(node string, v standin.Volume, pods ...string) {
	c.t.Helper()
	c.must(c.Longhorn().CreateVolume(c.t.Context(), v))
	c.must(c.Longhorn().Attach(c.t.Context(), v.Name, node, pods...))
}

// runUntilStopped runs a part of Longhorn until the returned function is called, or the test ends.
func (c *cluster) runUntilStopped(run func(context.Context)) (stop func()) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	c.t.Cleanup(stop) // before the control plane's, which was there first
	return stop
}

// run runs a part of the test on the same cluster.
func (c *cluster) run(name string, part func(t *testing.T, c *cluster)) bool {
	return c.t.Run(name, func(t *testing.T) { part(t, &cluster{Sandbox: c.Sandbox, t: t}) })
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// showLogs prints the end of what Fairlead logged.
func (c *cluster) showLogs() {
	for _, r := range c.Replicas() {
		c.t.Logf("log of %s:\n%s", r.Name, endOf(r.Log, 6000))
	}
}

// endOf returns the last whole lines of a log, at most so many bytes.
func endOf(log string, most int) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	if len(data) > most {
		data = data[len(data)-most:]
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return string(data)
}

// Setting groups.
const (
	system = "settings.longhorn.io"
	own    = "settings.fairlead.io"
)

func (c *cluster) set(group, name, value string) string {
	c.t.Helper()
	out, err := c.trySet(group, name, value)
	c.must(err)
	return out
}

func (c *cluster) trySet(group, name, value string, flags ...string) (string, error) {
	args := []string{"-n", namespace, "patch", group, name, "--type=merge", "-p", fmt.Sprintf(`{"value":%q}`, value)}
	return c.Kubectl(c.t.Context(), "", append(args, flags...)...)
}

// refusedSet changes a setting to a value that must be refused, and returns the refusal.
func (c *cluster) refusedSet(group, name, value string) string {
	c.t.Helper()
	out, err := c.trySet(group, name, value)
	if err == nil {
		c.t.Fatalf("%s accepted %q: %s", name, value, out)
	}
	return out
}

// rollout returns fields of the NetworkRollout; empty before the controller has created it.
func (c *cluster) rollout(jsonpath string) string {
	out, _ := c.Kubectl(c.t.Context(), "", "-n", namespace, "get", "networkrollouts", "longhorn", "--ignore-not-found", "-o", "jsonpath="+jsonpath)
	return out
}

// waitApplied waits until the rollout of the desired network is complete.
func (c *cluster) waitApplied(desired string) {
	c.t.Helper()
	c.waitHas("rollout", 90*time.Second, func() string { return "|" + c.rollout("{.status.desired}|{.status.phase}|{.status.message}") }, "|"+desired+"|Applied|")
}

func (c *cluster) waitWaiting() {
	c.t.Helper()
	c.waitIs("phase of the rollout", 20*time.Second, "Waiting", func() any { return c.rollout("{.status.phase}") })
}

// key of an object in the storage system's namespace.
func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: name} }

// get reads an object of the storage system's namespace, which must exist.
func (c *cluster) get(name string, into client.Object) {
	c.t.Helper()
	c.must(c.Client.Get(c.t.Context(), key(name), into))
}

func (c *cluster) create(o client.Object) error { return c.Client.Create(c.t.Context(), o) }

func (c *cluster) delete(o client.Object, options ...client.DeleteOption) {
	c.t.Helper()
	c.must(c.Client.Delete(c.t.Context(), o, options...))
}

// requested is the managed network that a pod asks for.
func (c *cluster) requested(pod *corev1.Pod) multus.Attachment {
	c.t.Helper()
	a, err := multus.ManagedAttachment(pod.Annotations[multus.NetworksAnnotation], pod.Namespace, longhorn.DefaultNames().Interfaces())
	c.must(err)
	return a
}

func (c *cluster) pods(labels map[string]string) []corev1.Pod {
	c.t.Helper()
	var list corev1.PodList
	c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels(labels)))
	return list.Items
}

// instanceManagers are the pods of a data engine's instance managers on a node.
func (c *cluster) instanceManagers(node, engine string) []corev1.Pod {
	c.t.Helper()
	return c.pods(map[string]string{"longhorn.io/component": "instance-manager", "longhorn.io/node": node, "longhorn.io/data-engine": engine})
}

func (c *cluster) instanceManager(node, engine string) corev1.Pod {
	c.t.Helper()
	pods := c.instanceManagers(node, engine)
	if len(pods) != 1 {
		c.t.Fatalf("%d instance managers of %s on %s", len(pods), engine, node)
	}
	return pods[0]
}

func (c *cluster) clients() []corev1.Pod {
	c.t.Helper()
	return c.pods(longhorn.DefaultNames().ClientLabels)
}

// serverPod is a pod as longhorn-manager would create it for the volume.
func serverPod(volume string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "share-manager-" + volume, Labels: map[string]string{
			"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/component": "share-manager", "longhorn.io/share-manager": volume,
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "share-manager", Image: "longhornio/longhorn-share-manager:v1.7.2"}}},
	}
}

// output keeps what child processes print, some of them at the same time.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
