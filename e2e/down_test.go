package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// TestFairleadDown stops all of Fairlead: nothing is blocked but changes of
// settings, and when it returns it repairs what was missed.
func TestFairleadDown(t *testing.T) {
	c := newCluster(t, options{webhooks: 2, controllers: 1, workloads: false})
	const network = netA + "@lhnet2"
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(network)
	lh := c.Longhorn()
	c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: "pvc-down", Shared: true}))
	c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: "pvc-idle", Shared: true}))
	c.must(lh.Attach(t.Context(), "pvc-down", "node-1"))
	for _, r := range c.Replicas() {
		c.must(r.Stop())
	}

	t.Run("blocks no pod, node or namespace", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "while-down"}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-while-down"}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "while-down"}, Spec: serverPod("x").Spec},
			serverPod("while-down"),
		} {
			c.must(c.Client.Create(t.Context(), o))
		}
		c.must(c.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-while-down"}}))
		pod := c.clients()[0]
		c.must(c.Client.Delete(t.Context(), &pod))
		c.eventually("the CSI plugin pod is back", 20*time.Second, func() error {
			if n := len(c.clients()); n != 3 {
				return fmt.Errorf("%d CSI plugin pods", n)
			}
			return nil
		})
		c.must(c.Client.Delete(t.Context(), serverPod("while-down"), client.GracePeriodSeconds(0)))
	})
	t.Run("changes of settings are refused", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		for _, group := range []string{system, own} {
			out := c.refused("-n", namespace, "patch", group, "storage-network", "--type=merge", "-p", `{"value":"kube-system/backup-net"}`)
			if !strings.Contains(out, "settings.longhorn.fairlead.io") {
				t.Errorf("the refusal does not name the webhook: %s", out)
			}
		}
		// longhorn-manager creates what is missing, with defaults, as it starts: it must not fail for our sake.
		_, err := c.Kubectl(t.Context(), "apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: log-path, namespace: longhorn-system}\nvalue: /var/lib/longhorn/logs/\n", "create", "-f", "-")
		c.must(err)
		c.managerCreates()
		err = c.Client.DeleteAllOf(t.Context(), &longhorn.Setting{}, client.InNamespace(namespace), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "settings.longhorn.fairlead.io") {
			t.Errorf("many settings can be deleted at once: %v", err)
		}
		// What is not Fairlead's to judge goes on.
		c.set(system, "backup-target", "nfs://example/backups")
		c.kubectl("-n", namespace, "label", own, "storage-network", "a=b")
	})

	// What others do while nobody looks: an endpoint from a headless Service, a
	// Service with a cluster IP, a DaemonSet written anew without the network.
	c.kubectl("-n", namespace, "patch", "sharemanagers.longhorn.io", "pvc-down", "--subresource=status", "--type=merge", "-p", `{"status":{"endpoint":"nfs://None/pvc-down"}}`)
	c.must(lh.Attach(t.Context(), "pvc-idle", "node-2"))
	c.must(lh.Detach(t.Context(), "pvc-idle"))
	c.must(lh.Detach(t.Context(), "pvc-down"))
	c.must(lh.Attach(t.Context(), "pvc-down", "node-1"))
	c.kubectl("-n", namespace, "patch", "sharemanagers.longhorn.io", "pvc-down", "--subresource=status", "--type=merge", "-p", `{"status":{"endpoint":"nfs://None/pvc-down"}}`)
	c.dropTemplateNetwork()
	c.must(c.RunFairlead(t.Context(), 2, 1))

	// By its own values Longhorn has replaced the Service by one with a cluster IP, which the endpoint has to fit.
	c.eventually("the endpoint fits the Service", 20*time.Second, func() error {
		var service corev1.Service
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pvc-down"}, &service); err != nil {
			return err
		}
		out := c.kubectl("-n", namespace, "get", "sharemanagers.longhorn.io", "pvc-down", "-o", "jsonpath={.status.endpoint}")
		want, ok := storage.Endpoint(storage.Service{Namespace: namespace, Name: "pvc-down", Volume: "pvc-down", ClusterIP: service.Spec.ClusterIP}, "cluster.local")
		if !ok || out != want {
			return fmt.Errorf("%s, want %s", out, want)
		}
		return nil
	})
	// node-1 has an attached volume: its client is left alone until that is detached.
	c.eventually("the clients of free nodes are back on the network", 30*time.Second, func() error {
		return c.clientsOn(network, "node-2", "node-3")
	})
	c.must(lh.Detach(t.Context(), "pvc-down"))
	c.eventually("every client is back on the network", 30*time.Second, func() error {
		return c.clientsOn(network, "node-1", "node-2", "node-3")
	})
	c.eventually("the idle volume's Service is headless", 30*time.Second, func() error {
		var service corev1.Service
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pvc-idle"}, &service); err != nil {
			return err // it is just being replaced
		}
		if service.Spec.ClusterIP != "None" || service.Annotations[storage.NetworkAnnotation] != network {
			return fmt.Errorf("cluster IP %s, network %q", service.Spec.ClusterIP, service.Annotations[storage.NetworkAnnotation])
		}
		return nil
	})
	c.waitApplied(network)
}

// managerCreates: longhorn-manager creates a setting with the value of the one that it
// replaces, as it starts. Nobody else may while Fairlead is down, nor may it change one.
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
	if err := as(manager+"default").Create(c.t.Context(), setting()); err == nil || !strings.Contains(err.Error(), "settings.longhorn.fairlead.io") {
		c.t.Errorf("another account creates a setting that was not judged: %v", err)
	}
	longhornManager := as(manager + storage.Longhorn().ServiceAccount)
	created := setting()
	c.must(longhornManager.Create(c.t.Context(), created))
	created.Value = "20"
	if err := longhornManager.Update(c.t.Context(), created); err == nil || !strings.Contains(err.Error(), "settings.longhorn.fairlead.io") {
		c.t.Errorf("longhorn-manager, and so whoever uses its UI, changes a setting that nobody has judged: %v", err)
	}
}

// dropTemplateNetwork does what an installer does that knows nothing of the
// network, and waits until Kubernetes has rolled it out.
func (c *cluster) dropTemplateNetwork() {
	c.t.Helper()
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: storage.Longhorn().ClientDaemonSet}}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{storage.NetworksAnnotation: nil},
	}}}})
	c.must(err)
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
