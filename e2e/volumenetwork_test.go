package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/invariants"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestVolumeNetwork moves one volume to a per-volume network, with an address that survives a move, and back.
// Another volume stays attached on the default network.
func TestVolumeNetwork(t *testing.T) {
	const common = netA + "@lhnet2"
	c := newCluster(t, options{webhooks: 1, controllers: 1})
	network, err := multus.ParseNetwork(netB)
	c.must(err)
	ofItsOwn := multus.VolumeAttachment(network)
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-own", Shared: true, Claim: "data"}))
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-other", Shared: true}))
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(common)
	c.attach("pvc-other", "node-3")

	c.has(c.refused("annotate", "persistentvolumeclaim", "data", "fairlead.io/volume-network=kube-system/other"), "kube-system/other: no volume may use the network", "networks.perVolume")
	c.has(c.refused("annotate", "persistentvolumeclaim", "data", "fairlead.io/volume-network="+netB, "fairlead.io/volume-addresses=192.168.60.1"),
		"metadata.annotations[fairlead.io/volume-addresses]: Forbidden: claims of namespace default may not ask for address 192.168.60.1", "longhorn.networks.fixedAddresses")

	out := c.ask("persistentvolumeclaim", "data", "fairlead.io/volume-network="+netB,
		"fairlead.io/volume-addresses=192.168.60.10/24,fd00:60::10/112", "fairlead.io/volume-mac=02:00:00:00:60:10")
	c.has(out, "Warning: accepted; 3 CSI plugin pods restart to join network "+netB, "waiting now: node-3 (pvc-other)")
	c.eventually("clients of free nodes join, and node-3 waits", 60*time.Second, func() error {
		return errors.Join(c.clientsJoined(ofItsOwn, "node-1", "node-2"),
			lacks("|"+c.rollout("{.status.phase} {.status.blockers[*].name} {.status.message}"), "|RollingClients pvc-other ", "pvc-own for "+netB))
	})
	if out := c.field(own, string(catalog.EndpointNetworkForRWX), "{.status.applied}"); out != "true" {
		t.Errorf("the setting is applied %s while a per-volume network waits", out)
	}
	// Until the network is ready, the volume stays on the default network.
	c.attach("pvc-own", "node-1")
	c.mustServe("pvc-own", common)
	c.detach("pvc-own")

	c.detach("pvc-other")
	c.waitServersMayBeOn(ofItsOwn.String())
	c.waitIs("network of the detached volume's Service", 20*time.Second, ofItsOwn.String(), func() any {
		var service corev1.Service
		_ = c.Client.Get(t.Context(), key("pvc-own"), &service) // it may be missing while it is replaced
		return service.Annotations[rwx.NetworkAnnotation]
	})
	for _, node := range []string{"node-1", "node-2"} { // the server moves
		c.attach("pvc-own", node)
		c.mustServe("pvc-own", ofItsOwn.String())
		c.eventually("the address on "+node, 10*time.Second, func() error { return c.hasAddresses(ofItsOwn) })
		if node == "node-1" {
			c.detach("pvc-own")
		}
	}
	c.attach("pvc-other", "node-3")
	c.mustServe("pvc-other", common)

	c.has(c.refused("annotate", "persistentvolume", "pvc-other", "fairlead.io/volume-network="+netB, "fairlead.io/volume-addresses=192.168.60.10"),
		`metadata.annotations[fairlead.io/volume-addresses]: Invalid value: "192.168.60.10": address 192.168.60.10 on network `+netB+" is of another volume already")

	// Back to the default network, once the volume is detached.
	c.has(c.ask("persistentvolumeclaim", "data", "fairlead.io/volume-network-", "fairlead.io/volume-addresses-", "fairlead.io/volume-mac-"),
		"the change takes effect when the volume is detached: pvc-own (node-2)")
	c.waitServersMayBeOn("")
	c.mustServe("pvc-own", ofItsOwn.String())
	c.must(c.clientsJoined(ofItsOwn, "node-1", "node-2", "node-3"))
	c.detach("pvc-own")
	c.detach("pvc-other")
	c.waitIs("clients leave after the Services", 90*time.Second, "networks [], paused: false", func() any {
		var ds appsv1.DaemonSet
		c.get(longhorn.DefaultNames().ClientDaemonSet, &ds)
		left, err := multus.VolumeAttachments(ds.Spec.Template.Annotations[multus.NetworksAnnotation], namespace)
		c.must(err)
		_, paused := ds.Annotations[rwx.StrategyAnnotation]
		return fmt.Sprintf("networks %v, paused: %v", left, paused)
	})
	c.waitApplied(common)
	c.attach("pvc-own", "node-1")
	c.mustServe("pvc-own", common)
}

// ask annotates an object, and returns the output.
func (c *cluster) ask(kind, name string, annotations ...string) string {
	c.t.Helper()
	return c.kubectl(append([]string{"annotate", "--overwrite", kind, name}, annotations...)...)
}

func (c *cluster) waitServersMayBeOn(networks string) {
	c.t.Helper()
	c.waitIs("recorded per-volume networks of servers", 60*time.Second, networks, func() any { return c.rollout("{.status.servers.volumeNetworks[*]}") })
}

// clientsJoined checks that the clients of the nodes ask for the network too.
func (c *cluster) clientsJoined(network multus.Attachment, nodes ...string) error {
	on := map[string]bool{}
	for _, pod := range c.clients() {
		asked, err := multus.VolumeAttachments(pod.Annotations[multus.NetworksAnnotation], pod.Namespace)
		c.must(err)
		if pod.DeletionTimestamp == nil && slices.Contains(asked, network) {
			on[pod.Spec.NodeName] = true
		}
	}
	for _, node := range nodes {
		if !on[node] {
			return fmt.Errorf("the client on %s is not on %s", node, network)
		}
	}
	return nil
}

// mustServe wants Service and server pod of an attached volume on one network.
func (c *cluster) mustServe(volume, network string) {
	c.t.Helper()
	service, server := c.service(volume), c.server(volume)
	if got := service.Annotations[rwx.NetworkAnnotation]; got != network || service.Spec.ClusterIP != "None" {
		c.t.Errorf("the Service of %s is for %q with cluster IP %s, want %s", volume, got, service.Spec.ClusterIP, network)
	}
	selections, err := multus.ParseSelections(server.Annotations[multus.NetworksAnnotation], namespace)
	c.must(err)
	if len(selections) != 1 || selections[0].String() != network {
		c.t.Errorf("the server of %s asks for %v, want %s", volume, selections, network)
	}
	want := fmt.Sprintf("nfs://%s.%s.svc.cluster.local/%s", volume, namespace, volume)
	if got := c.endpoint(volume); got != want {
		c.t.Errorf("the endpoint is %s, want %s", got, want)
	}
}

// hasAddresses wants the fixed addresses reported for the volume's server.
func (c *cluster) hasAddresses(network multus.Attachment) error {
	server := c.server("pvc-own")
	addresses, err := invariants.ReportedAddresses(server.Annotations, network)
	if got := fmt.Sprint(addresses); err != nil || got != "[192.168.60.10 fd00:60::10]" {
		return fmt.Errorf("reported: %s, %v", got, err)
	}
	if status := server.Annotations[multus.NetworkStatusAnnotation]; !strings.Contains(status, `"mac": "02:00:00:00:60:10"`) {
		return errors.New(status)
	}
	return nil
}
