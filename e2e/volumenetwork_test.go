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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	facts "github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// TestVolumeNetwork takes one volume to a network of its own, with an address that
// survives a move, and back, while another stays attached and where it is.
func TestVolumeNetwork(t *testing.T) {
	const common = netA + "@lhnet2"
	c := newCluster(t, options{webhooks: 1, controllers: 1})
	network, err := storage.ParseNetwork(netB)
	c.must(err)
	ofItsOwn := storage.VolumeAttachment(network)
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-own", Shared: true, Claim: "data"}))
	c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: "pvc-other", Shared: true}))
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(common)
	c.attach("pvc-other", "node-3")

	out := c.ask("persistentvolumeclaim", "data", "fairlead.io/volume-network="+netB,
		"fairlead.io/volume-addresses=192.168.60.10/24,fd00:60::10/112", "fairlead.io/volume-mac=02:00:00:00:60:10")
	for _, want := range []string{"Warning: accepted; 3 CSI plugin pods restart to join network " + netB, "waiting now: node-3 (pvc-other)"} {
		if !strings.Contains(out, want) {
			t.Errorf("got  %s\nwant %s", out, want)
		}
	}
	c.eventually("the clients of free nodes join, node-3 waits and is named", 60*time.Second, func() error {
		if err := c.clientsJoined(ofItsOwn, "node-1", "node-2"); err != nil {
			return err
		}
		out := c.rolloutStatus("{.status.phase} {.status.blockers[*].name} {.status.message}")
		if !strings.HasPrefix(out, "RollingClients pvc-other ") || !strings.Contains(out, "pvc-own for "+netB) {
			return errors.New(out)
		}
		return nil
	})
	if out := c.kubectl("-n", namespace, "get", own, string(catalog.EndpointNetworkForRWX), "-o", "jsonpath={.status.applied}"); out != "true" {
		t.Errorf("the setting is applied %s: networks of single volumes are nothing to it", out)
	}
	// It is not ready, so the volume is where all are.
	c.attach("pvc-own", "node-1")
	c.mustServe("pvc-own", common)
	c.detach("pvc-own")

	c.detach("pvc-other")
	c.waitServersMayBeOn(ofItsOwn.String())
	c.eventually("the Service of the volume at rest is made anew", 20*time.Second, func() error {
		var service corev1.Service
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pvc-own"}, &service); err != nil {
			return err // it is just being replaced
		}
		if got := service.Annotations[storage.NetworkAnnotation]; got != ofItsOwn.String() {
			return fmt.Errorf("it is for %q", got)
		}
		return nil
	})
	for _, node := range []string{"node-1", "node-2"} { // the second is the move
		c.attach("pvc-own", node)
		c.mustServe("pvc-own", ofItsOwn.String())
		c.eventually("the address on "+node, 10*time.Second, func() error { return c.hasAddresses(ofItsOwn) })
		if node == "node-1" {
			c.detach("pvc-own")
		}
	}
	c.attach("pvc-other", "node-3")
	c.mustServe("pvc-other", common)

	// Somebody else wants the address.
	refusal := c.refused("annotate", "persistentvolume", "pvc-other", "fairlead.io/volume-network="+netB, "fairlead.io/volume-addresses=192.168.60.10")
	if want := "metadata.annotations[fairlead.io/volume-addresses]: Invalid value: \"192.168.60.10\": address 192.168.60.10 on network " + netB + " is of volume pvc-own"; !strings.Contains(refusal, want) {
		t.Errorf("got  %s\nwant %s", refusal, want)
	}

	// Back: nothing moves before it is detached.
	if out, want := c.ask("persistentvolumeclaim", "data", "fairlead.io/volume-network-", "fairlead.io/volume-addresses-", "fairlead.io/volume-mac-"), "takes effect when the volume is detached: pvc-own (node-2)"; !strings.Contains(out, want) {
		t.Errorf("got  %s\nwant %s", out, want)
	}
	c.waitServersMayBeOn("")
	c.mustServe("pvc-own", ofItsOwn.String())
	c.mustJoin(ofItsOwn)
	c.detach("pvc-own")
	c.detach("pvc-other")
	c.eventually("clients leave when Services have settled", 90*time.Second, func() error {
		var ds appsv1.DaemonSet
		c.must(c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: storage.Longhorn().ClientDaemonSet}, &ds))
		left, err := storage.VolumeAttachments(ds.Spec.Template.Annotations[storage.NetworksAnnotation], namespace)
		c.must(err)
		if _, paused := ds.Annotations[facts.StrategyAnnotation]; len(left) > 0 || paused {
			return fmt.Errorf("the template asks for %v, paused %v", left, paused)
		}
		return nil
	})
	c.waitApplied(common)
	c.attach("pvc-own", "node-1")
	c.mustServe("pvc-own", common)
}

// ask annotates an object, and returns what is printed.
func (c *cluster) ask(kind, name string, annotations ...string) string {
	c.t.Helper()
	return c.kubectl(append([]string{"annotate", "--overwrite", kind, name}, annotations...)...)
}

func (c *cluster) rolloutStatus(jsonpath string) string {
	c.t.Helper()
	return c.kubectl("-n", namespace, "get", "networkrollouts", "longhorn", "-o", "jsonpath="+jsonpath)
}

func (c *cluster) waitServersMayBeOn(networks string) {
	c.t.Helper()
	c.eventually("servers may be on "+networks, 60*time.Second, func() error {
		if out := c.rolloutStatus("{.status.servers.volumeNetworks[*]}|{.status.message}"); !strings.HasPrefix(out, networks+"|") {
			return errors.New(out)
		}
		return nil
	})
}

// clientsJoined checks that the clients of the nodes ask for the network too.
func (c *cluster) clientsJoined(network storage.Attachment, nodes ...string) error {
	on := map[string]bool{}
	for _, pod := range c.clients() {
		asked, err := storage.VolumeAttachments(pod.Annotations[storage.NetworksAnnotation], pod.Namespace)
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

func (c *cluster) mustJoin(network storage.Attachment) {
	c.t.Helper()
	c.must(c.clientsJoined(network, "node-1", "node-2", "node-3"))
}

// mustServe wants Service and server pod of an attached volume on one network.
func (c *cluster) mustServe(volume, network string) {
	c.t.Helper()
	var service corev1.Service
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: volume}, &service))
	if got := service.Annotations[storage.NetworkAnnotation]; got != network || service.Spec.ClusterIP != "None" {
		c.t.Errorf("the Service of %s is for %q with cluster IP %s, want %s", volume, got, service.Spec.ClusterIP, network)
	}
	var server corev1.Pod
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: "share-manager-" + volume}, &server))
	selections, err := storage.ParseSelections(server.Annotations[storage.NetworksAnnotation], namespace)
	c.must(err)
	if len(selections) != 1 || selections[0].String() != network {
		c.t.Errorf("the server of %s asks for %v, want %s", volume, selections, network)
	}
	want := fmt.Sprintf("nfs://%s.%s.svc.cluster.local/%s", volume, namespace, volume)
	if got := c.kubectl("-n", namespace, "get", "sharemanagers.longhorn.io", volume, "-o", "jsonpath={.status.endpoint}"); got != want {
		c.t.Errorf("the endpoint is %s, want %s", got, want)
	}
}

// hasAddresses wants the fixed addresses reported for the volume's server.
func (c *cluster) hasAddresses(network storage.Attachment) error {
	var server corev1.Pod
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: "share-manager-pvc-own"}, &server))
	addresses, err := storage.ReportedAddresses(server.Annotations, network)
	if got := fmt.Sprint(addresses); err != nil || got != "[192.168.60.10 fd00:60::10]" {
		return fmt.Errorf("reported: %s, %v", got, err)
	}
	if status := server.Annotations[storage.NetworkStatusAnnotation]; !strings.Contains(status, `"mac": "02:00:00:00:60:10"`) {
		return errors.New(status)
	}
	return nil
}
