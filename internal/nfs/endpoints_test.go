package nfs

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Charts and examples name their ports as they like: NFS has one number.
func TestPortOfAServerService(t *testing.T) {
	port := func(name string, number int32, protocol corev1.Protocol) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: &name, Port: &number, Protocol: &protocol}
	}
	for name, c := range map[string]struct {
		ports []discoveryv1.EndpointPort
		want  string
		why   string
	}{
		"of the name":             {[]discoveryv1.EndpointPort{port("rpc", 111, "UDP"), port("nfs", 12049, "TCP"), port("other", 2049, "TCP")}, "[10.0.0.1:12049]", ""},
		"the only one":            {[]discoveryv1.EndpointPort{port("x", 12049, "TCP")}, "[10.0.0.1:12049]", ""},
		"csi-driver-nfs' example": {[]discoveryv1.EndpointPort{port("tcp-2049", 2049, "TCP"), port("udp-111", 111, "UDP")}, "[10.0.0.1:2049]", ""},
		"by UDP only":             {[]discoveryv1.EndpointPort{port("a", 2049, "UDP"), port("b", 111, "UDP")}, "[]", `none of its ports is named "nfs" or is TCP port 2049: it has "a" (2049/UDP), "b" (111/UDP); name the NFS port by spec.serverService.portName`},
		"none is known":           {[]discoveryv1.EndpointPort{port("a", 20490, "TCP"), port("b", 20491, "TCP")}, "[]", `none of its ports is named "nfs" or is TCP port 2049: it has "a" (20490/TCP), "b" (20491/TCP); name the NFS port by spec.serverService.portName`},
	} {
		t.Run(name, func(t *testing.T) {
			list := []discoveryv1.EndpointSlice{{AddressType: discoveryv1.AddressTypeIPv4, Ports: c.ports, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}}}
			var got []string
			for _, b := range FromEndpointSlices(list, discoveryv1.AddressTypeIPv4, "nfs") {
				got = append(got, b.Addr.String())
			}
			must.Equal(t, fmt.Sprint(got), c.want)
			if c.why != "" {
				must.Equal(t, WhyNoServer(list, "nfs"), c.why)
			}
		})
	}
	must.Equal(t, WhyNoServer(nil, "nfs"), "it has no EndpointSlices: there is no such Service in the namespace, or it has no selector, like one of type ExternalName")
	none := discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{port("nfs", 2049, "TCP")}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(false)}}}}
	must.Equal(t, WhyNoServer([]discoveryv1.EndpointSlice{none}, "nfs"), "none of its pods is Ready")
}
