package e2e

import (
	"errors"
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

	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// TestEndpoints follows a volume from its network being enabled to its server
// moving: what is published, what DNS says of it, and how soon. The controllers
// of Kubernetes that also look at endpoints run beside it.
func TestEndpoints(t *testing.T) {
	const domain, volume = "storage.example", "pvc-moves"
	c := newCluster(t, options{clusterDomain: domain, webhooks: 1, controllers: 1})
	dns := c.startDNS()
	lh := c.Longhorn()
	name := volume + "." + namespace + ".svc." + domain
	c.must(lh.CreateVolume(t.Context(), standin.Volume{Name: volume, Shared: true}))
	c.set(own, string(catalog.EndpointNetworkForRWX), netA)
	c.waitApplied(netA + "@lhnet2")

	// Longhorn makes an Endpoints object of its own, which Kubernetes mirrors and
	// Longhorn's endpoint controller fills with the pod's address where it knows of no network.
	c.must(lh.Attach(t.Context(), volume, "node-1"))
	first := c.waitPublished(volume)
	c.resolves(dns, name, first...)
	if endpoint := c.kubectl("-n", namespace, "get", "sharemanagers.longhorn.io", volume, "-o", "jsonpath={.status.endpoint}"); endpoint != "nfs://"+name+"/"+volume {
		t.Errorf("the endpoint is %s", endpoint)
	}
	c.notTwice(volume)

	t.Run("a server that is not Ready, or is leaving, is not published", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		server := c.server(volume)
		c.setReady(server, corev1.ConditionFalse)
		c.waitAddresses(volume)
		c.resolves(dns, name)
		c.setReady(server, corev1.ConditionTrue)
		c.waitAddresses(volume, first...)
		server = c.server(volume)
		c.kubectl("-n", namespace, "patch", "pod", server.Name, "--type=merge", "-p", `{"metadata":{"finalizers":["test.fairlead.io/hold"]}}`)
		c.must(c.Client.Delete(t.Context(), server))
		c.waitAddresses(volume)
		c.resolves(dns, name)
		c.kubectl("-n", namespace, "patch", "pod", server.Name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		c.eventually("the server is gone", 10*time.Second, func() error {
			return gone(c.Client.Get(t.Context(), client.ObjectKeyFromObject(server), &corev1.Pod{}))
		})
	})

	t.Run("a server that moves is published within a second of its status", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.must(lh.Attach(t.Context(), volume, "node-2"))
		to := c.waitPublished(volume)
		c.whileQuiet(func(try int) (pulse, error) {
			from := to
			took, meanwhile := c.move(volume, []string{"node-3", "node-1", "node-2"}[try])
			to = c.waitPublished(volume)
			for _, address := range from {
				if slices.Contains(to, address) {
					t.Errorf("the server moved and %s is still published: %v", address, to)
				}
			}
			t.Logf("published %s after the status; %s: %.1f times", took.Round(time.Millisecond/10), meanwhile, float64(took)/float64(meanwhile.median))
			if took > time.Second {
				return meanwhile, fmt.Errorf("it took %s to publish the new address", took)
			}
			return meanwhile, nil
		})
		c.resolves(dns, name, to...)
		c.notTwice(volume)
	})

	t.Run("what others change is put right, what is theirs is left alone", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		now := c.waitPublished(volume)
		c.must(c.Client.DeleteAllOf(t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelManagedBy: "fairlead.io"}))
		c.waitAddresses(volume, now...)
		c.kubectl("-n", namespace, "patch", "endpoints", volume, "--type=merge", "-p", `{"subsets":[{"addresses":[{"ip":"10.9.9.9"}],"ports":[{"name":"nfs","port":2049}]}]}`)
		c.waitAddresses(volume, now...)
		selected := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pvc-selected", Labels: map[string]string{"longhorn.io/share-manager": volume}, Annotations: map[string]string{storage.OptOutAnnotation: "true"}},
			Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"longhorn.io/share-manager": volume}, Ports: []corev1.ServicePort{{Name: "nfs", Port: 2049}}},
		}
		c.must(c.Client.Create(t.Context(), selected))
		c.eventually("Kubernetes publishes it", 10*time.Second, func() error {
			slices := c.slices("pvc-selected")
			if len(slices) == 0 || slices[0].Labels[discoveryv1.LabelManagedBy] != "endpointslice-controller.k8s.io" {
				return fmt.Errorf("slices: %d", len(slices))
			}
			return nil
		})
	})

	t.Run("nothing is left behind", func(t *testing.T) {
		c := &cluster{Sandbox: c.Sandbox, t: t}
		c.must(lh.Detach(t.Context(), volume))
		c.waitAddresses(volume)
		c.must(c.Client.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: volume}}))
		c.eventually("what was published is collected", 30*time.Second, func() error {
			if n := len(c.slices(volume)); n > 0 {
				return fmt.Errorf("%d slices", n)
			}
			return gone(c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: volume}, c.classic()))
		})
		c.resolves(dns, name)
	})
}

// classic is an empty Endpoints object.
//
//lint:ignore SA1019 for the readers of the deprecated API
func (c *cluster) classic() *corev1.Endpoints { return &corev1.Endpoints{} }

func gone(err error) error {
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil {
		return errors.New("it is still there")
	}
	return nil
}

func (c *cluster) server(volume string) *corev1.Pod {
	c.t.Helper()
	var pod corev1.Pod
	c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: "share-manager-" + volume}, &pod))
	return &pod
}

func (c *cluster) setReady(pod *corev1.Pod, to corev1.ConditionStatus) {
	c.t.Helper()
	c.kubectl("-n", pod.Namespace, "patch", "pod", pod.Name, "--subresource=status", "-p", fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, to))
}

// reported are the addresses that Multus gave the volume's server, IPv4 first.
func (c *cluster) reported(volume string) ([]string, error) {
	addresses, err := reportedBy(c.server(volume))
	if err != nil || len(addresses) != 2 {
		return nil, fmt.Errorf("reported: %v, %w", addresses, err)
	}
	return []string{addresses[0].String(), addresses[1].String()}, nil
}

// waitPublished waits until what Multus reports is what is published, and returns it.
func (c *cluster) waitPublished(volume string) []string {
	c.t.Helper()
	var want []string
	c.eventually("Multus reports the server", 10*time.Second, func() (err error) {
		want, err = c.reported(volume)
		return err
	})
	c.waitAddresses(volume, want...)
	return want
}

// waitAddresses waits until slices and the classic object have just these addresses.
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
		if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: volume}, e); client.IgnoreNotFound(err) != nil {
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

// notTwice wants no slice but Fairlead's, one per family, after Kubernetes'
// controllers have had their time, and nobody writing in the end.
func (c *cluster) notTwice(volume string) {
	c.t.Helper()
	versions := func() string {
		var text strings.Builder
		for _, s := range c.slices(volume) {
			fmt.Fprintf(&text, "%s of %s at %s\n", s.Name, s.Labels[discoveryv1.LabelManagedBy], s.ResourceVersion)
		}
		e := c.classic()
		c.must(c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: volume}, e))
		return text.String() + e.ResourceVersion
	}
	c.eventually("two slices of Fairlead", 10*time.Second, func() error {
		if is := c.slices(volume); len(is) != 2 || is[0].Labels[discoveryv1.LabelManagedBy] != "fairlead.io" || is[1].Labels[discoveryv1.LabelManagedBy] != "fairlead.io" {
			return errors.New(versions())
		}
		return nil
	})
	c.comesToRest("what is published", 2*time.Second, versions)
}

// move kills the server and has it come back on another node. It returns how
// long after the new status was seen the new address was seen in a slice, both
// by bare watches, and what such a watch took meanwhile.
func (c *cluster) move(volume, to string) (time.Duration, pulse) {
	c.t.Helper()
	old := c.server(volume)
	seen := c.sights(&corev1.PodList{}, &discoveryv1.EndpointSliceList{})
	c.kubectl("cordon", old.Spec.NodeName)
	defer c.kubectl("uncordon", old.Spec.NodeName)
	probe := c.startProbe()
	c.must(c.Client.Delete(c.t.Context(), old, client.GracePeriodSeconds(0)))
	c.takeAddress(old.Spec.NodeName)
	c.must(c.Longhorn().Attach(c.t.Context(), volume, to))
	var address string
	var appeared time.Time
	published := map[string]time.Time{}
	for deadline := time.After(60 * time.Second); ; {
		select {
		case <-deadline:
			c.t.Fatalf("the new address %q was not published, but these: %v", address, published)
		case s := <-seen:
			switch o := s.Object.(type) {
			case *corev1.Pod:
				if !appeared.IsZero() || o.Name != old.Name || o.UID == old.UID || s.Type == watch.Deleted {
					continue
				}
				if reported, err := reportedBy(o); err == nil && len(reported) > 0 {
					address, appeared = reported[0].String(), s.at
				}
			case *discoveryv1.EndpointSlice:
				if o.Labels[discoveryv1.LabelServiceName] != volume || len(o.Endpoints) != 1 {
					continue
				}
				if a := o.Endpoints[0].Addresses[0]; published[a].IsZero() {
					published[a] = s.at
				}
			}
		}
		if at := published[address]; !at.IsZero() {
			return at.Sub(appeared), probe.end()
		}
	}
}

// reportedBy is what Multus gave a server, IPv4 first.
func reportedBy(server *corev1.Pod) ([]netip.Addr, error) {
	attachment, err := storage.ParseAttachment(netA + "@lhnet2")
	if err != nil {
		return nil, err
	}
	return storage.ReportedAddresses(server.Annotations, attachment)
}

// takeAddress has another pod take the address that has just become free on a node.
func (c *cluster) takeAddress(node string) {
	c.t.Helper()
	pod := serverPod("elsewhere")
	pod.Name, pod.Labels, pod.Annotations = "takes-the-address-of-"+node, nil, map[string]string{storage.NetworksAnnotation: netA}
	c.must(c.Client.Create(c.t.Context(), pod))
	c.eventually("the address is taken", 10*time.Second, func() error {
		c.must(c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(pod), pod))
		if pod.Annotations[storage.NetworkStatusAnnotation] == "" {
			return errors.New("Multus reports none yet")
		}
		return nil
	})
}
