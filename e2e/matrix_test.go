package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// TestNetworkMatrix holds Longhorn's table of networks, each row through the
// API server, for both setting names, the newer one in both groups, both IP families, and a
// cluster domain that is not cluster.local.
func TestNetworkMatrix(t *testing.T) {
	const domain = "storage.example"
	c := newCluster(t, options{clusterDomain: domain, webhooks: 1, controllers: 1})
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-matrix", Shared: true}))
	manager := c.createInstanceManager()
	const a1, a2, b2 = netA + "@lhnet1", netA + "@lhnet2", netB + "@lhnet2"
	rows := []struct {
		storage, enabled, endpoint string
		want                       string
	}{
		{storage: netA, enabled: "true", want: a1},
		{storage: netA, endpoint: netA, want: a2},
		{endpoint: netA, want: a2},
		{endpoint: netB, want: b2},
		{storage: netA, endpoint: netB, want: b2},
		{storage: netA, enabled: "false"},
		{},
	}
	for _, group := range []string{own, system} {
		if group == system { // Longhorn has a setting of the endpoint network from 1.11 on, and then that is the home
			c.kubectl("-n", namespace, "patch", own, string(catalog.EndpointNetworkForRWX), "--type=merge", "-p", `{"value":null}`)
			_, err := c.Kubectl(t.Context(), fmt.Sprintf("apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: %s, namespace: %s}\nvalue: \"\"\n", catalog.EndpointNetworkForRWX, namespace), "create", "-f", "-")
			c.must(err)
		}
		for _, row := range rows {
			t.Run(fmt.Sprintf("%s storage=%q enabled=%q endpoint=%q", group, row.storage, row.enabled, row.endpoint), func(t *testing.T) {
				c := &cluster{Sandbox: c.Sandbox, t: t}
				if row.enabled == "" {
					row.enabled = "false"
				}
				c.set(system, string(catalog.StorageNetwork), row.storage)
				c.set(system, string(catalog.StorageNetworkForRWX), row.enabled)
				c.set(group, string(catalog.EndpointNetworkForRWX), row.endpoint)
				c.waitApplied(row.want)
				c.checkRow("pvc-matrix", row.want, domain)
				if row.storage != "" {
					c.notAppliedToInstanceManagers()
				}
			})
		}
	}
	var still corev1.Pod
	c.must(c.Client.Get(t.Context(), client.ObjectKeyFromObject(manager), &still))
	if still.UID != manager.UID || still.DeletionTimestamp != nil {
		t.Error("the instance manager was restarted by the gate of RWX volumes")
	}
}

// notAppliedToInstanceManagers wants the storage network not to be applied:
// the instance manager does not ask for it, and is in use.
func (c *cluster) notAppliedToInstanceManagers() {
	c.t.Helper()
	c.eventually("storage-network waits for the engine", 5*time.Second, func() error {
		out := c.kubectl("-n", namespace, "get", own, string(catalog.StorageNetwork), "-o", "jsonpath={.status.applied} {.status.conditions[0].message}")
		if !strings.HasPrefix(out, "false") || !strings.Contains(out, "pvc-rwo-e-0 (node-1)") {
			return errors.New(out)
		}
		return nil
	})
}

// createInstanceManager makes a pod that an engine runs on, and that the gate of these settings does not
// open (facts of Longhorn: a sync of the RWX setting deleted such pods).
func (c *cluster) createInstanceManager() *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "instance-manager-1", Labels: map[string]string{
			"longhorn.io/managed-by": "longhorn-manager", "longhorn.io/component": "instance-manager",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "im", Image: "longhornio/longhorn-instance-manager:v1.7.2"}}},
	}
	pod.Spec.NodeName = "node-1"
	// A pod that does not run yet serves nothing, and would be restarted for settings at once.
	pod.Annotations = map[string]string{storage.OptOutAnnotation: "true"}
	c.must(c.Client.Create(c.t.Context(), pod))
	_, err := c.Kubectl(c.t.Context(), "apiVersion: longhorn.io/v1beta2\nkind: Engine\nmetadata: {name: pvc-rwo-e-0, namespace: "+namespace+"}\n"+
		"spec: {volumeName: pvc-rwo, nodeID: node-1, desireState: running, dataEngine: v1}\n", "create", "-f", "-")
	c.must(err)
	c.eventually("the instance manager runs", 60*time.Second, func() error {
		c.must(c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(pod), pod))
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return nil
	})
	c.kubectl("-n", namespace, "annotate", "pod", pod.Name, storage.OptOutAnnotation+"-")
	return pod
}

func (c *cluster) checkRow(volume, want, domain string) {
	c.t.Helper()
	lh := c.Longhorn()
	c.must(lh.Attach(c.t.Context(), volume, "node-1"))
	defer func() { c.must(lh.Detach(c.t.Context(), volume)) }()
	for _, pod := range c.clients() {
		if got := c.requested(&pod).String(); got != want {
			c.t.Errorf("CSI plugin pod %s asks for %q, want %q", pod.Name, got, want)
		}
	}
	var server corev1.Pod
	key := client.ObjectKey{Namespace: namespace, Name: "share-manager-" + volume}
	c.must(c.Client.Get(c.t.Context(), key, &server))
	if got := c.requested(&server).String(); got != want {
		c.t.Errorf("the server pod asks for %q, want %q", got, want)
	}
	var service corev1.Service
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: volume}, &service))
	endpoint := c.kubectl("-n", namespace, "get", "sharemanagers.longhorn.io", volume, "-o", "jsonpath={.status.endpoint}")
	if want == "" {
		if service.Spec.ClusterIP == "None" || len(service.Spec.Selector) == 0 {
			c.t.Errorf("the Service has cluster IP %q and selector %v, want an address and a selector", service.Spec.ClusterIP, service.Spec.Selector)
		}
		if wanted := fmt.Sprintf("nfs://%s/%s", service.Spec.ClusterIP, volume); endpoint != wanted {
			c.t.Errorf("the endpoint is %s, want %s", endpoint, wanted)
		}
		return
	}
	if service.Spec.ClusterIP != "None" || len(service.Spec.Selector) != 0 {
		c.t.Errorf("the Service has cluster IP %q and selector %v, want a headless one without", service.Spec.ClusterIP, service.Spec.Selector)
	}
	if wanted := fmt.Sprintf("nfs://%s.%s.svc.%s/%s", volume, namespace, domain, volume); endpoint != wanted {
		c.t.Errorf("the endpoint is %s, want %s", endpoint, wanted)
	}
	attachment, err := storage.ParseAttachment(want)
	c.must(err)
	c.eventually("addresses of both families", 10*time.Second, func() error {
		c.must(c.Client.Get(c.t.Context(), key, &server))
		addresses, err := storage.ReportedAddresses(server.Annotations, attachment)
		var text []string
		for _, a := range addresses {
			text = append(text, a.String())
		}
		if err != nil || len(addresses) != 2 || !addresses[0].Is4() || !addresses[1].Is6() {
			return fmt.Errorf("reported: %s, %v", strings.Join(text, ", "), err)
		}
		return nil
	})
}
