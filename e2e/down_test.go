package e2e

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestFairleadDown stops all of Fairlead. Only changes of settings are blocked, and Fairlead repairs the rest when it returns.
func TestFairleadDown(t *testing.T) {
	c := newCluster(t, options{webhooks: 2, controllers: 1, duties: "remount: on"})
	const network = netA + "@lhnet2"
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(network)
	lh := c.Longhorn()
	c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: "pvc-down", Shared: true}))
	c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: "pvc-idle", Shared: true}))
	c.must(lh.Attach(t.Context(), "pvc-down", "node-1"))
	c.stopFairlead()

	c.run("blocks no pod, node or namespace", func(t *testing.T, c *cluster) {
		pod := c.clients()[0] // chosen before node-while-down can have one, which would be deleted with the node
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "while-down"}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-while-down"}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "while-down"}, Spec: serverPod("x").Spec},
			serverPod("while-down"),
		} {
			c.must(c.create(o))
		}
		c.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-while-down"}})
		c.delete(&pod)
		c.eventually("the CSI plugin pod is replaced", 20*time.Second, func() error {
			for _, client := range c.clients() {
				if client.Spec.NodeName == pod.Spec.NodeName && client.UID != pod.UID {
					return nil
				}
			}
			return fmt.Errorf("%s has no new CSI plugin pod", pod.Spec.NodeName)
		})
		c.delete(serverPod("while-down"), client.GracePeriodSeconds(0))
	})
	c.run("refuses changes of settings", func(t *testing.T, c *cluster) {
		for _, group := range []string{system, own} {
			c.has(c.refusedSet(group, "storage-network", netB), "settings.longhorn.fairlead.io")
		}
		// longhorn-manager creates missing settings with defaults when it starts, which must not fail.
		_, err := c.Kubectl(t.Context(), "apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: log-path, namespace: longhorn-system}\nvalue: /var/lib/longhorn/logs/\n", "create", "-f", "-")
		c.must(err)
		c.managerCreates()
		err = c.Client.DeleteAllOf(t.Context(), &longhorn.Setting{}, client.InNamespace(namespace), client.DryRunAll)
		c.has(fmt.Sprint(err), "settings.longhorn.fairlead.io")
		// Other writes pass.
		c.set(system, "backup-target", "nfs://example/backups")
		c.kubectl("-n", namespace, "label", own, "storage-network", "a=b")
	})

	// Meanwhile others write an endpoint from a headless Service, a Service with a cluster IP, and a DaemonSet
	// without the network.
	c.kubectl("-n", namespace, "patch", "sharemanagers.longhorn.io", "pvc-down", "--subresource=status", "--type=merge", "-p", `{"status":{"endpoint":"nfs://None/pvc-down"}}`)
	c.must(lh.Attach(t.Context(), "pvc-idle", "node-2"))
	c.must(lh.Detach(t.Context(), "pvc-idle"))
	c.must(lh.Detach(t.Context(), "pvc-down"))
	c.must(lh.Attach(t.Context(), "pvc-down", "node-1"))
	c.kubectl("-n", namespace, "patch", "sharemanagers.longhorn.io", "pvc-down", "--subresource=status", "--type=merge", "-p", `{"status":{"endpoint":"nfs://None/pvc-down"}}`)
	c.dropTemplateNetwork()
	c.must(c.RunFairlead(t.Context(), 2, 1))

	// By its own values Longhorn has replaced the Service by one with a cluster IP, which the endpoint must fit.
	c.eventually("the endpoint fits the Service", 20*time.Second, func() error {
		var service corev1.Service
		if err := c.Client.Get(t.Context(), key("pvc-down"), &service); err != nil {
			return err
		}
		want, ok := rwx.Endpoint(rwx.Service{Namespace: namespace, Name: "pvc-down", Volume: "pvc-down", ClusterIP: service.Spec.ClusterIP}, "cluster.local")
		if out := c.endpoint("pvc-down"); !ok || out != want {
			return fmt.Errorf("%s, want %s", out, want)
		}
		return nil
	})
	// node-1 has an attached volume, so its client restarts after the detach.
	c.eventually("the clients of free nodes are back on the network", 30*time.Second, func() error {
		return c.clientsOn(network, "node-2", "node-3")
	})
	c.must(lh.Detach(t.Context(), "pvc-down"))
	c.eventually("every client is back on the network", 30*time.Second, func() error {
		return c.clientsOn(network, "node-1", "node-2", "node-3")
	})
	c.waitIs("Service of the idle volume", 30*time.Second, "cluster IP None, network "+network, func() any {
		var service corev1.Service
		_ = c.Client.Get(t.Context(), key("pvc-idle"), &service) // it may be missing while it is replaced
		return fmt.Sprintf("cluster IP %s, network %s", service.Spec.ClusterIP, service.Annotations[rwx.NetworkAnnotation])
	})
	c.waitApplied(network)
	c.run("repairs servers and remounts", func(_ *testing.T, c *cluster) { c.repairs(network) })
}

// stopFairlead stops the processes that run.
func (c *cluster) stopFairlead() {
	c.t.Helper()
	for _, r := range c.Replicas() {
		if r.Running() {
			c.must(r.Stop())
		}
	}
}

// repairs creates objects while Fairlead is down. Fairlead repairs what it can, and reports the rest.
func (c *cluster) repairs(network string) {
	ctx, lh := c.t.Context(), c.Longhorn()
	for _, v := range []standin.Volume{{Name: "pvc-unused", Shared: true}, {Name: "pvc-used", Shared: true, Claim: "used"}, {Name: "pvc-port", Shared: true}, {Name: "pvc-asks", Claim: "asks"}} {
		c.must(lh.CreateVolume(ctx, v))
		c.must(lh.Attach(ctx, v.Name, "node-1"))
	}
	c.must(c.create(statefulSet("used", "used")))
	c.must(c.create(statefulSet("asks", "asks")))
	c.waitRunning("used-0", "asks-0")
	c.waitPublished("pvc-unused")
	c.stopFairlead()
	// Both servers are replaced while no webhook adds the network. Longhorn keeps their Services, as its own network
	// setting is not applied.
	c.kubectl("-n", namespace, "patch", system, string(catalog.StorageNetwork), "--subresource=status", "--type=merge", "-p", `{"status":{"applied":false}}`)
	for _, volume := range []string{"pvc-unused", "pvc-used"} {
		c.failOver(volume, "node-1")
	}
	c.kubectl("-n", namespace, "delete", "service", "pvc-port")
	c.kubectl("-n", namespace, "create", "service", "nodeport", "pvc-port", "--tcp=2049:2049")
	c.kubectl("-n", namespace, "label", "service", "pvc-port", "longhorn.io/share-manager=pvc-port")
	used, idle := c.server("pvc-used"), c.server("pvc-unused")
	c.must(c.RunFairlead(ctx, 1, 1))

	c.waitGone(idle)
	c.must(lh.Attach(ctx, "pvc-unused", "node-1")) // longhorn-manager recreates the server
	c.waitPublished("pvc-unused")
	if c.server("pvc-used").UID != used.UID {
		c.t.Error("a server in use was restarted")
	}
	c.waitHas("report", 10*time.Second, func() string {
		return c.rollout(`{range .status.outOfLine[*]}{.kind} {.name} {.message}{"\n"}{end}`) + c.events(namespace)
	},
		"Server share-manager-pvc-used asks for the cluster network, but its Service uses "+network+"; restarted when no started workload uses volume pvc-used",
		"ShareManager pvc-used OutOfLine server pod share-manager-pvc-used asks for network \"\"",
		"pod default/used-0 does",
		"Service pvc-port still uses the cluster network instead of "+network+"; left alone, since it is not of type ClusterIP",
		"ShareManager pvc-port NotClusterIP Service pvc-port is not of type ClusterIP",
		"ShareManager pvc-unused Repaired")

	// Longhorn asks for a remount.
	c.nextSecond()
	before, others := c.uids("asks-0"), c.uids("used-0")
	requested := time.Now()
	c.must(lh.RequestRemount(ctx, "pvc-asks", requested))
	c.waitReplaced(before)
	c.waitRunning("asks-0")
	pod, err := c.workload("asks-0")
	c.must(err)
	if due := requested.Truncate(time.Second).Add(5 * time.Second); pod.CreationTimestamp.Time.Before(due) { // times in the API have no fractions
		c.t.Errorf("the workload was restarted at %s, before %s", pod.CreationTimestamp, due)
	}
	c.notRestarted(c.uids("asks-0"), 2*time.Second)
	c.notRestarted(others, 0)
}

// managerCreates: when longhorn-manager starts, it creates a setting with the value of the setting that it replaces.
// While Fairlead is down, no other account may, and longhorn-manager may not change a setting.
func (c *cluster) managerCreates() {
	c.t.Helper()
	const manager = "system:serviceaccount:" + namespace + ":"
	as := func(user string) client.Client {
		config := rest.CopyConfig(c.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
		impersonating, err := client.New(config, client.Options{Scheme: c.Client.Scheme()})
		c.must(err)
		return impersonating
	}
	setting := func() *longhorn.Setting {
		return &longhorn.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: string(catalog.InstanceManagerProbeTimeout)}, Value: "15"}
	}
	c.has(fmt.Sprint(as(manager+"default").Create(c.t.Context(), setting())), "settings.longhorn.fairlead.io")
	longhornManager := as(manager + longhorn.DefaultNames().ServiceAccount)
	created := setting()
	c.must(longhornManager.Create(c.t.Context(), created))
	created.Value = "20"
	c.has(fmt.Sprint(longhornManager.Update(c.t.Context(), created)), "settings.longhorn.fairlead.io") // its UI uses this account
}

// dropTemplateNetwork removes the network from the DaemonSet, as an installer may, and waits until it is rolled out.
func (c *cluster) dropTemplateNetwork() {
	c.t.Helper()
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: longhorn.DefaultNames().ClientDaemonSet}}
	patch := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:null}}}}}`, multus.NetworksAnnotation)
	c.must(c.Client.Patch(c.t.Context(), ds, client.RawPatch(types.MergePatchType, patch)))
	c.eventually("the CSI plugin is rolled without the network", time.Minute, func() error {
		return c.clientsOn("", "node-1", "node-2", "node-3")
	})
}

// clientsOn checks the network that the clients of the nodes ask for.
func (c *cluster) clientsOn(network string, nodes ...string) error {
	on := map[string]bool{}
	for _, pod := range c.clients() {
		if pod.DeletionTimestamp == nil && c.requested(&pod).String() == network {
			on[pod.Spec.NodeName] = true
		}
	}
	for _, node := range nodes {
		if !on[node] {
			return fmt.Errorf("the client on %s is not on %q", node, network)
		}
	}
	return nil
}
