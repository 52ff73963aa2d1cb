package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/invariants"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// TestEndpoints follows what is published for a volume, and what DNS says: from enabling its network to moving its server.
// Kubernetes' own endpoint controllers run beside Fairlead.
func TestEndpoints(t *testing.T) {
	const domain, volume = "storage.example", "pvc-moves"
	c := newCluster(t, options{clusterDomain: domain, webhooks: 1, controllers: 1})
	dns := c.startDNS()
	lh := c.Longhorn()
	name := volume + "." + namespace + ".svc." + domain
	c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: volume, Shared: true}))
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(netA + "@lhnet2")

	// Longhorn creates an Endpoints object, which Kubernetes mirrors. Longhorn's endpoint controller writes the pod's
	// own address to it, as this version knows no endpoint network.
	c.must(lh.Attach(t.Context(), volume, "node-1"))
	first := c.waitPublished(volume)
	c.resolves(dns, name, first...)
	if endpoint := c.endpoint(volume); endpoint != "nfs://"+name+"/"+volume {
		t.Errorf("the endpoint is %s", endpoint)
	}
	c.publishedOnce(volume)

	c.run("a server that is not Ready or is terminating is not published", func(t *testing.T, c *cluster) {
		server := c.server(volume)
		c.setReady(server, corev1.ConditionFalse)
		c.waitAddresses(volume)
		c.resolves(dns, name)
		c.setReady(server, corev1.ConditionTrue)
		c.waitAddresses(volume, first...)
		server = c.server(volume)
		c.kubectl("-n", namespace, "patch", "pod", server.Name, "--type=merge", "-p", `{"metadata":{"finalizers":["test.fairlead.io/hold"]}}`)
		c.delete(server)
		c.waitAddresses(volume)
		c.resolves(dns, name)
		c.kubectl("-n", namespace, "patch", "pod", server.Name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		c.waitGone(server)
	})

	c.run("a moved server is published by its event", func(t *testing.T, c *cluster) {
		c.must(lh.Attach(t.Context(), volume, "node-2"))
		to := c.waitPublished(volume)
		c.whileQuiet(func(try int) (pulse, error) {
			from := to
			took, meanwhile := c.move(volume, []string{"node-3", "node-1", "node-2"}[try])
			to = c.waitPublished(volume)
			for _, address := range from {
				if slices.Contains(to, address) {
					t.Errorf("%s of the old server is still published: %v", address, to)
				}
			}
			t.Logf("published %s after the status; %s", took.Round(time.Millisecond/10), meanwhile)
			if took > soon {
				return meanwhile, fmt.Errorf("the new address was published after %s", took)
			}
			return meanwhile, nil
		})
		c.resolves(dns, name, to...)
		c.publishedOnce(volume)
	})

	c.run("foreign changes are reverted, foreign slices kept", func(t *testing.T, c *cluster) {
		now := c.waitPublished(volume)
		c.must(c.Client.DeleteAllOf(t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelManagedBy: "fairlead.io"}))
		c.waitAddresses(volume, now...)
		c.kubectl("-n", namespace, "patch", "endpoints", volume, "--type=merge", "-p", `{"subsets":[{"addresses":[{"ip":"10.9.9.9"}],"ports":[{"name":"nfs","port":2049}]}]}`)
		c.waitAddresses(volume, now...)
		selected := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pvc-selected", Labels: map[string]string{"longhorn.io/share-manager": volume}, Annotations: map[string]string{rwx.OptOutAnnotation: "true"}},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"longhorn.io/share-manager": volume}, Ports: []corev1.ServicePort{{Name: "nfs", Port: 2049}}},
		}
		c.must(c.create(selected))
		c.waitHas("slices of Kubernetes", 10*time.Second, func() string { return c.managersOf("pvc-selected") }, "endpointslice-controller.k8s.io")
	})

	c.run("nothing remains of a deleted Service", func(t *testing.T, c *cluster) {
		c.must(lh.Detach(t.Context(), volume))
		c.waitAddresses(volume)
		c.delete(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: volume}})
		c.waitIs("slices", 30*time.Second, 0, func() any { return len(c.slices(volume)) })
		classic := c.classic()
		classic.Namespace, classic.Name = namespace, volume
		c.waitGone(classic)
		c.resolves(dns, name)
	})
}

// classic is an empty Endpoints object.
//
//lint:ignore SA1019 for the readers of the deprecated API
func (c *cluster) classic() *corev1.Endpoints { return &corev1.Endpoints{} }

func (c *cluster) server(volume string) *corev1.Pod {
	c.t.Helper()
	var pod corev1.Pod
	c.get("share-manager-"+volume, &pod)
	return &pod
}

func (c *cluster) setReady(pod *corev1.Pod, to corev1.ConditionStatus) {
	c.t.Helper()
	c.kubectl("-n", pod.Namespace, "patch", "pod", pod.Name, "--subresource=status", "-p", fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, to))
}

// waitPublished waits until the two addresses that Multus reports are published, and returns them.
func (c *cluster) waitPublished(volume string) (want []string) {
	c.t.Helper()
	c.eventually("addresses reported by Multus", 10*time.Second, func() error {
		addresses, err := reportedBy(c.server(volume))
		if err != nil || len(addresses) != 2 {
			return fmt.Errorf("reported: %v, %w", addresses, err)
		}
		want = []string{addresses[0].String(), addresses[1].String()}
		return nil
	})
	c.waitAddresses(volume, want...)
	return want
}

// waitAddresses waits until slices and Endpoints have just these addresses.
func (c *cluster) waitAddresses(volume string, want ...string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%v are published", want), 10*time.Second, func() error {
		var inSlices, inClassic []string
		for _, s := range c.slices(volume) {
			for _, e := range s.Endpoints {
				if !ptr.Deref(e.Conditions.Ready, false) || !ptr.Deref(e.Conditions.Serving, false) || ptr.Deref(e.Conditions.Terminating, true) {
					return fmt.Errorf("conditions of %v: %+v", e.Addresses, e.Conditions)
				}
				inSlices = append(inSlices, e.Addresses...)
			}
		}
		e := c.classic()
		if err := c.Client.Get(c.t.Context(), key(volume), e); client.IgnoreNotFound(err) != nil {
			return err
		}
		for _, subset := range e.Subsets {
			for _, a := range subset.Addresses {
				inClassic = append(inClassic, a.IP)
			}
		}
		for _, list := range [][]string{inSlices, inClassic} {
			slices.SortFunc(list, func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
			if !slices.Equal(list, want) {
				return fmt.Errorf("in slices %v, in Endpoints %v", inSlices, inClassic)
			}
		}
		return nil
	})
}

func (c *cluster) slices(service string) []discoveryv1.EndpointSlice {
	c.t.Helper()
	var list discoveryv1.EndpointSliceList
	c.must(c.Client.List(c.t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}))
	return list.Items
}

// managersOf a Service's slices.
func (c *cluster) managersOf(service string) string {
	c.t.Helper()
	var managers []string
	for _, s := range c.slices(service) {
		managers = append(managers, s.Labels[discoveryv1.LabelManagedBy])
	}
	return strings.Join(managers, " ")
}

// publishedOnce wants only Fairlead's slices, one per family, and no more writes once all controllers are done.
func (c *cluster) publishedOnce(volume string) {
	c.t.Helper()
	c.waitIs("managers of slices", 10*time.Second, "fairlead.io fairlead.io", func() any { return c.managersOf(volume) })
	c.comesToRest("slices and Endpoints", 2*time.Second, func() string {
		e := c.classic()
		c.get(volume, e)
		text := e.ResourceVersion
		for _, s := range c.slices(volume) {
			text += "\n" + s.Name + " at " + s.ResourceVersion
		}
		return text + c.managersOf(volume)
	})
}

// move kills the server and starts it on another node. It returns how long after the new server's status its address
// was in a slice, both by bare watches, and how long a bare watch took meanwhile.
func (c *cluster) move(volume, to string) (time.Duration, pulse) {
	c.t.Helper()
	old := c.server(volume)
	f := c.film(&corev1.PodList{}, &discoveryv1.EndpointSliceList{})
	f.wait(c, "a watch that has begun", 10*time.Second, func(m moment) bool { return m.object.GetUID() == old.UID })
	c.kubectl("cordon", old.Spec.NodeName)
	defer c.kubectl("uncordon", old.Spec.NodeName)
	probe := c.startProbe()
	c.delete(old, client.GracePeriodSeconds(0))
	c.takeAddress(old.Spec.NodeName)
	c.must(c.Longhorn().Attach(c.t.Context(), volume, to))
	var address string
	appeared := f.wait(c, "the address of the new server", time.Minute, func(m moment) bool {
		pod, ok := m.object.(*corev1.Pod)
		if !ok || pod.Name != old.Name || pod.UID == old.UID || m.what == watch.Deleted {
			return false
		}
		reported, err := reportedBy(pod)
		if err != nil || len(reported) == 0 {
			return false
		}
		address = reported[0].String()
		return true
	})
	published := f.wait(c, "a slice with the address of the new server", time.Minute, func(m moment) bool {
		s, ok := m.object.(*discoveryv1.EndpointSlice)
		return ok && s.Labels[discoveryv1.LabelServiceName] == volume && len(s.Endpoints) == 1 && s.Endpoints[0].Addresses[0] == address
	})
	return published.at.Sub(appeared.at), probe.end()
}

// reportedBy are the addresses that Multus reports for a server, IPv4 first.
func reportedBy(server *corev1.Pod) ([]netip.Addr, error) {
	attachment, err := multus.ParseAttachment(netA + "@lhnet2")
	if err != nil {
		return nil, err
	}
	return invariants.ReportedAddresses(server.Annotations, attachment)
}

// takeAddress gives another pod the address that has just become free on a node.
func (c *cluster) takeAddress(node string) {
	c.t.Helper()
	pod := serverPod("elsewhere")
	pod.Name, pod.Labels, pod.Annotations = "takes-the-address-of-"+node, nil, map[string]string{multus.NetworksAnnotation: netA}
	c.must(c.create(pod))
	c.waitIs("address of another pod", 10*time.Second, true, func() any {
		c.get(pod.Name, pod)
		return pod.Annotations[multus.NetworkStatusAnnotation] != ""
	})
}

// startDNS starts CoreDNS. A failed test shows its log.
func (c *cluster) startDNS() *sandbox.DNS {
	c.t.Helper()
	dns, err := c.StartDNS(c.t.Context())
	c.must(err)
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("log of CoreDNS:\n%s", endOf(dns.Log, 6000))
		}
	})
	return dns
}

// resolves waits until the name has just these addresses, IPv4 first.
func (c *cluster) resolves(dns *sandbox.DNS, name string, want ...string) {
	c.t.Helper()
	c.waitIs("addresses of "+name, 10*time.Second, fmt.Sprint(want), func() any {
		addresses, err := dns.Lookup(c.t.Context(), name)
		if err != nil {
			return err
		}
		return fmt.Sprint(addresses)
	})
}
