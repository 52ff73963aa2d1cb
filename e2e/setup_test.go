package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/storage"
)

const (
	namespace = "longhorn-system"
	netA      = "kube-system/storage-net"
	netB      = "kube-system/backup-net"
)

// TestMain looks for what all tests need before the first takes its time.
func TestMain(m *testing.M) {
	for _, name := range []string{"FAIRLEAD_BINARY", "FAIRLEAD_RELEASE_BINARY"} {
		if os.Getenv(name) == "" {
			fmt.Fprintf(os.Stderr, "%s does not say which binary to test: run this by make test-e2e\n", name)
			os.Exit(2)
		}
	}
	// Asked for here, or go test would show the result of another Kubernetes.
	if version := os.Getenv("K8S"); version != "" {
		fmt.Println("on Kubernetes", version)
	}
	os.Exit(m.Run())
}

// cluster is a sandbox and the test that it is for.
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
	// longhorn is the version that the stand-in models; empty is the one that it is compared with.
	longhorn string
	// syncs: Longhorn applies its settings itself, as its setting controller does.
	syncs bool
	// duties of the profile, as in the configuration, in one line.
	duties string
	// fencing as in the configuration, in one line; empty for none.
	fencing string
	// ondat as in the configuration, in one line without its braces.
	ondat string
	// controllerArgs are given to the controller beside what its Deployment says.
	controllerArgs []string
	// nodes of the cluster; 3 if nothing is said. fastNodeLoss: Kubernetes notices in seconds that one is lost.
	nodes        int
	fastNodeLoss bool
	// auditWrites records all writes.
	auditWrites bool
	// binary is an environment variable that names the binary; by default FAIRLEAD_BINARY.
	binary string
}

// newCluster starts a control plane with Fairlead in it, and ends both with the test.
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

// newControlPlane starts a control plane with nothing in it, and ends it, and
// what was started in it, with the test.
//
// Clusters mostly wait, so tests run two at a time: see the Makefile.
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
	s, err := sandbox.Start(t.Context(), sandbox.Options{Dir: t.TempDir(), Nodes: o.nodes, FastNodeLoss: o.fastNodeLoss, LonghornVersion: o.longhorn, AuditWrites: o.auditWrites, ClusterDomain: o.clusterDomain, Fairlead: binary, Duties: o.duties, Fencing: o.fencing, Ondat: o.ondat, ControllerArgs: o.controllerArgs, Out: out})
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

// runComponents installs Longhorn's components, and runs them by lh until the
// function is called that it returns, or the test ends.
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

// endOf a log, in whole lines of at most so many bytes together.
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

// eventually waits for something that takes a moment, and fails with the last reason why it is not so.
// within is what that takes at most on a machine that has time for it. It is no claim of anybody's,
// so a busy machine has longer; what claims how soon something happens measures it.
func (c *cluster) eventually(what string, within time.Duration, check func() error) {
	c.t.Helper()
	within *= 3
	deadline := time.Now().Add(within)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not within %s: %v", what, within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// kubectl runs a command that must succeed.
func (c *cluster) kubectl(args ...string) string {
	c.t.Helper()
	out, err := c.tryKubectl(args...)
	c.must(err)
	return out
}

// tryKubectl runs a command. One that only reads is repeated where the API server could not
// be reached: that happens on a busy machine, and says nothing of what is tested.
func (c *cluster) tryKubectl(args ...string) (string, error) {
	c.t.Helper()
	reads := slices.ContainsFunc(args, func(arg string) bool { return arg == "get" || arg == "describe" || arg == "auth" })
	for again := 2; ; again-- {
		out, err := c.Kubectl(c.t.Context(), "", args...)
		unreached := err != nil && slices.ContainsFunc([]string{"TLS handshake timeout", "connection refused", "EOF"}, func(text string) bool { return strings.Contains(out, text) })
		if !reads || !unreached || again == 0 {
			return out, err
		}
		c.t.Logf("tried again: %v", err)
		time.Sleep(time.Second)
	}
}

// refused runs a command that must fail, and returns what it says.
func (c *cluster) refused(args ...string) string {
	c.t.Helper()
	out, err := c.Kubectl(c.t.Context(), "", args...)
	if err == nil {
		c.t.Fatalf("kubectl %s should have been refused:\n%s", strings.Join(args, " "), out)
	}
	return out
}

// Setting groups.
const (
	system = "settings.longhorn.io"
	own    = "settings.fairlead.io"
)

func (c *cluster) set(group, name, value string) string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "patch", group, name, "--type=merge", "-p", fmt.Sprintf(`{"value":%q}`, value))
}

// waitApplied waits until the roll-out is complete for the desired network.
func (c *cluster) waitApplied(desired string) {
	c.t.Helper()
	c.eventually("applied "+desired, 90*time.Second, func() error {
		out, err := c.Kubectl(c.t.Context(), "", "-n", namespace, "get", "networkrollouts", "longhorn", "-o", "jsonpath={.status.desired}|{.status.phase}|{.status.message}")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out) // a controller that has just started is yet to create it
		}
		if !strings.HasPrefix(out, desired+"|Applied|") {
			return fmt.Errorf("the roll-out is at %s", out)
		}
		return nil
	})
}

// requested is the managed network that a pod asks for.
func (c *cluster) requested(pod *corev1.Pod) storage.Attachment {
	c.t.Helper()
	a, err := storage.ManagedAttachment(pod.Annotations[storage.NetworksAnnotation], pod.Namespace, storage.Longhorn().Interfaces())
	c.must(err)
	return a
}

func (c *cluster) pods(labels map[string]string) []corev1.Pod {
	c.t.Helper()
	var list corev1.PodList
	c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels(labels)))
	return list.Items
}

func (c *cluster) clients() []corev1.Pod {
	c.t.Helper()
	return c.pods(storage.Longhorn().ClientLabels)
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

// output keeps what children print, for when the test fails. Some run at the same time.
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
