package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestDNSFollowsSlices shows what clients of a Service without a selector are
// told: what is in its slices, of both IP families, and nothing that was.
func TestDNSFollowsSlices(t *testing.T) {
	const domain = "storage.example"
	c := newControlPlane(t, options{clusterDomain: domain})
	dns := c.startDNS()
	clients, err := kubernetes.NewForConfig(c.Config)
	c.must(err)
	service, err := clients.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-by-hand"},
		Spec: corev1.ServiceSpec{
			ClusterIP:  corev1.ClusterIPNone,
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyRequireDualStack),
		},
	}, metav1.CreateOptions{})
	c.must(err)
	name := service.Name + "." + service.Namespace + ".svc." + domain
	c.resolves(dns, name)

	api := clients.DiscoveryV1().EndpointSlices(service.Namespace)
	v4, err := api.Create(t.Context(), slice(service, discoveryv1.AddressTypeIPv4, "192.168.50.7"), metav1.CreateOptions{})
	c.must(err)
	v6, err := api.Create(t.Context(), slice(service, discoveryv1.AddressTypeIPv6, "fd00:50::7"), metav1.CreateOptions{})
	c.must(err)
	c.resolves(dns, name, "192.168.50.7", "fd00:50::7")

	for _, want := range [][]string{{}, {"192.168.50.8", "fd00:50::8"}, {"192.168.50.8"}, {"fd00:50::9"}} {
		v4.Endpoints, v6.Endpoints = endpoints(want, netip.Addr.Is4), endpoints(want, netip.Addr.Is6)
		v4, err = api.Update(t.Context(), v4, metav1.UpdateOptions{})
		c.must(err)
		v6, err = api.Update(t.Context(), v6, metav1.UpdateOptions{})
		c.must(err)
		c.resolves(dns, name, want...)
	}
}

// slice is one that no controller of Kubernetes looks after.
func slice(service *corev1.Service, family discoveryv1.AddressType, addresses ...string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: service.Name + "-", Namespace: service.Namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "by-hand"},
		},
		AddressType: family, Endpoints: endpoints(addresses, netip.Addr.IsValid),
	}
}

func endpoints(addresses []string, of func(netip.Addr) bool) []discoveryv1.Endpoint {
	list := []discoveryv1.Endpoint{}
	for _, a := range addresses {
		if of(netip.MustParseAddr(a)) {
			list = append(list, discoveryv1.Endpoint{Addresses: []string{a}})
		}
	}
	return list
}

// startDNS starts CoreDNS; its log is shown if the test fails.
func (c *cluster) startDNS() *sandbox.DNS {
	c.t.Helper()
	dns, err := c.StartDNS(c.t.Context())
	c.must(err)
	c.t.Cleanup(func() {
		if c.t.Failed() {
			data, err := os.ReadFile(dns.Log)
			c.t.Logf("log of CoreDNS: %v\n%s", err, data[max(0, len(data)-6000):])
		}
	})
	return dns
}

// resolves waits until the name has just these addresses, IPv4 first.
func (c *cluster) resolves(dns *sandbox.DNS, name string, want ...string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%s resolves to %v", name, want), 10*time.Second, func() error {
		addresses, err := dns.Lookup(c.t.Context(), name)
		if err != nil {
			return err
		}
		got := []string{}
		for _, a := range addresses {
			got = append(got, a.String())
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it resolves to %v", got)
		}
		return nil
	})
}
