package conntrack

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func service(name string, port int32, ips ...string) corev1.Service {
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIPs: ips, Ports: []corev1.ServicePort{{Name: "nfs", Port: port}}},
	}
}

func slice(service string, port int32, endpoints ...discoveryv1.Endpoint) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Ports:      []discoveryv1.EndpointPort{{Name: ptr.To("nfs"), Port: ptr.To(port)}}, Endpoints: endpoints,
	}
}

func endpoint(address string, conditions ...bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}}
	if len(conditions) == 2 {
		e.Conditions.Ready, e.Conditions.Serving = &conditions[0], &conditions[1]
	}
	return e
}

func show(f Frontends) []string {
	var list []string
	for a, servers := range f {
		list = append(list, fmt.Sprintf("%s%s", a, servers))
	}
	slices.Sort(list)
	return list
}

func TestFrontendsJoinServicesAndSlices(t *testing.T) {
	dual := service("dual", 2049, "10.96.0.2", "fd00::2")
	other := slice("other-port", 2049, endpoint("10.0.0.9"))
	other.Ports[0].Name = ptr.To("metrics")
	udp := slice("udp", 2049, endpoint("10.0.0.9"))
	udp.Ports[0].Protocol = ptr.To(corev1.ProtocolUDP)
	foreign := slice("a", 2049, endpoint("10.0.0.9"))
	foreign.Namespace = "m"
	got := show(NewFrontends(
		[]corev1.Service{service("a", 2049, "10.96.0.1"), dual, service("headless", 2049, "None"), service("empty", 2049, "10.96.0.3"), service("other-port", 1, "10.96.0.4"), service("udp", 1, "10.96.0.5")},
		[]discoveryv1.EndpointSlice{
			slice("a", 12049, endpoint("10.0.0.2"), endpoint("10.0.0.1", true, true), endpoint("10.0.0.3", false, true), endpoint("10.0.0.4", false, false)),
			slice("a", 12049, endpoint("10.0.0.1")),
			slice("dual", 2049, endpoint("10.0.0.5")), slice("dual", 2049, endpoint("fd00::5")), slice("headless", 2049, endpoint("10.0.0.6")), other, udp, foreign,
		}))
	want := []string{
		"10.96.0.1:2049[10.0.0.1:12049 10.0.0.2:12049 10.0.0.3:12049]", "10.96.0.2:2049[10.0.0.5:2049]", "[fd00::2]:2049[[fd00::5]:2049]",
	}
	must.Equal(t, got, want)
}

func TestOnlyLeftServersAreStale(t *testing.T) {
	f := Frontends{netip.MustParseAddrPort("10.96.0.1:2049"): {netip.MustParseAddrPort("10.0.0.1:2049")}}
	for text, want := range map[[2]string]bool{
		{"10.96.0.1:2049", "10.0.0.2:2049"}:  true,
		{"10.96.0.1:2049", "10.0.0.1:2050"}:  true,
		{"10.96.0.1:2049", "10.0.0.1:2049"}:  false,
		{"10.96.0.1:2049", "10.96.0.1:2049"}: false, // not translated
		{"10.96.0.1:111", "10.0.0.2:2049"}:   false,
		{"10.96.0.9:2049", "10.0.0.2:2049"}:  false,
		{"10.0.0.2:2049", "10.0.0.2:2049"}:   false, // mounted directly
	} {
		must.Equal(t, f.IsStale(Entry{netip.MustParseAddrPort(text[0]), netip.MustParseAddrPort(text[1])}), want, "%v", text)
	}
}
