package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/invariants"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// rwxOn sets a network for RWX volumes in Longhorn's own settings, as its version has them.
func (c *cluster) rwxOn(version, network string) {
	c.t.Helper()
	if version == "v1.7.2" {
		if network != "" {
			c.set(system, "storage-network", network)
		}
		c.set(system, "storage-network-for-rwx-volume-enabled", fmt.Sprint(network != ""))
		return
	}
	c.set(system, "endpoint-network-for-rwx-volume", network)
}

// TestLonghornActsByValue shows that the stand-in for Longhorn 1.12 builds by values that are not applied, and applies
// settings as Longhorn does. For 1.7, TestStandInIsLikeRecordedLonghorn shows it. Fairlead is not installed.
func TestLonghornActsByValue(t *testing.T) {
	const version, rwx, asks = "v1.12.0", "endpoint-network-for-rwx-volume", netA + "@lhnet2"
	c := newControlPlane(t, options{longhorn: version})
	c.seedLonghorn()
	c.runComponents(c.Longhorn())
	c.runUntilStopped(c.Longhorn().SyncSettings)
	lh := c.Longhorn()
	for _, volume := range []string{"pvc-old", "pvc-new"} {
		c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: volume, Shared: true, ReplicaNodes: []string{"node-1"}}))
	}
	c.must(lh.Attach(t.Context(), "pvc-old", "node-1"))
	c.waitClassic("pvc-old", podAddress)
	c.rwxOn(version, netA)
	c.waitApplies(rwx, "false") // while an attachment ticket exists

	// By value, while nothing is applied.
	c.must(lh.Attach(t.Context(), "pvc-new", "node-2"))
	service, server := c.service("pvc-new"), c.server("pvc-new")
	if service.Spec.ClusterIP != corev1.ClusterIPNone || len(service.Spec.Selector) > 0 {
		t.Errorf("the Service has cluster IP %q and selector %v", service.Spec.ClusterIP, service.Spec.Selector)
	}
	if got := c.requested(server).String(); got != asks {
		t.Errorf("the server asks for %q", got)
	}
	if want, got := "nfs://pvc-new.longhorn-system.svc.cluster.local/pvc-new", c.endpoint("pvc-new"); got != want {
		t.Errorf("the endpoint is %s, want %s", got, want)
	}
	c.waitClassic("pvc-new", func(pod *corev1.Pod) string { return reportedOn(pod, asks) })
	if old := c.service("pvc-old"); old.Spec.ClusterIP == corev1.ClusterIPNone {
		t.Error("the Service of an attached volume was replaced")
	}
	if got := c.clientTemplate(); got != "" {
		t.Errorf("the DaemonSet asks for %s while a volume is attached", got)
	}

	// An upgrade's deployer builds by value too.
	c.must(lh.UpgradePlugin(t.Context(), "v1.11.1"))
	if got := c.clientTemplate(); got != asks {
		t.Errorf("the deployer's DaemonSet asks for %q", got)
	}
	c.rwxOn(version, "")
	c.waitSynced()

	// A detach wakes no controller. Any write to the setting does, and the next server has a Service of the right kind.
	for _, volume := range []string{"pvc-old", "pvc-new"} {
		c.must(lh.Detach(t.Context(), volume))
	}
	c.waitIdle()
	if got := c.clientTemplate(); got != asks {
		t.Errorf("the DaemonSet was changed without an event of the setting: %q", got)
	}
	c.touch("storage-network")
	c.touch(rwx)
	c.waitApplies("storage-network", "true")
	c.waitApplies(rwx, "true")
	if got := c.clientTemplate(); got != "" {
		t.Errorf("the DaemonSet still asks for %q", got)
	}
	c.must(lh.Attach(t.Context(), "pvc-new", "node-2"))
	if now := c.service("pvc-new"); now.Spec.ClusterIP == corev1.ClusterIPNone || len(now.Spec.Selector) == 0 {
		t.Errorf("the headless Service was not replaced: %q, %v", now.Spec.ClusterIP, now.Spec.Selector)
	}
}

// touch writes an annotation to one of Longhorn's settings.
func (c *cluster) touch(name string) {
	c.t.Helper()
	c.kubectl("-n", namespace, "annotate", "--overwrite", system, name, fmt.Sprintf("test.fairlead.io/touched=%d", time.Now().UnixNano()))
}

func (c *cluster) waitApplies(name, applied string) {
	c.t.Helper()
	c.waitIs(name+" applied", 20*time.Second, applied, func() any { return c.field(system, name, "{.status.applied}") })
}

// waitSynced waits until Longhorn's setting controller has handled all earlier events, which it does in order.
func (c *cluster) waitSynced() {
	c.t.Helper()
	for range 2 { // the write of the first sync is an event too
		c.kubectl("-n", namespace, "patch", system, "log-level", "--subresource=status", "--type=merge", "-p", `{"status":{"applied":false}}`)
		c.waitApplies("log-level", "true")
	}
}

// waitIdle waits until no instance manager runs an engine or a replica.
func (c *cluster) waitIdle() {
	c.t.Helper()
	const instances = "{range .items[*]}{.status.instanceEngines}{.status.instanceReplicas}{end}"
	c.waitIs("engines and replicas", 20*time.Second, "", func() any {
		return strings.ReplaceAll(c.kubectl("-n", namespace, "get", "instancemanagers", "-o", "jsonpath="+instances), "{}", "")
	})
}

// clientTemplate is the network that the CSI plugin's DaemonSet asks for.
func (c *cluster) clientTemplate() string {
	c.t.Helper()
	var ds appsv1.DaemonSet
	c.get(longhorn.DefaultNames().ClientDaemonSet, &ds)
	return c.requested(&corev1.Pod{ObjectMeta: ds.Spec.Template.ObjectMeta}).String()
}

func podAddress(pod *corev1.Pod) string { return pod.Status.PodIP }

// reportedOn is the first address that Multus reports for a pod's attachment.
func reportedOn(pod *corev1.Pod, attachment string) string {
	a, err := multus.ParseAttachment(attachment)
	if err != nil {
		return err.Error()
	}
	addresses, err := invariants.ReportedAddresses(pod.Annotations, a)
	if err != nil || len(addresses) == 0 {
		return fmt.Sprintf("none: %v", err)
	}
	return addresses[0].String()
}

// waitClassic waits until the Endpoints of a volume have just this address of its server.
func (c *cluster) waitClassic(volume string, address func(*corev1.Pod) string) {
	c.t.Helper()
	c.eventually("Endpoints of "+volume, 20*time.Second, func() error {
		e := c.classic()
		if err := c.Client.Get(c.t.Context(), key(volume), e); err != nil {
			return err
		}
		want := address(c.server(volume))
		if len(e.Subsets) != 1 || len(e.Subsets[0].Addresses) != 1 || e.Subsets[0].Addresses[0].IP != want {
			return fmt.Errorf("subsets %v, want %s", e.Subsets, want)
		}
		return nil
	})
}
