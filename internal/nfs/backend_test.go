package nfs

import (
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func at(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func TestParseBackendsReportsAllProblems(t *testing.T) {
	got, problems := ParseBackends("spec", []v1alpha1.NFSBackend{
		{Address: "10.0.0.2", Zone: "a", Weight: ptr.To[int32](3), Drain: true},
		{Address: "10.0.0.1", Port: 111},
		{Address: "10.0.0.2", Port: 2049},
		{Address: "10.0.0.2", Port: 2050},
		{Address: "localhost"},
	}, 0)
	want := []Backend{
		{Addr: at("10.0.0.1:111"), Weight: 1, Source: Static},
		{Addr: at("10.0.0.2:2049"), Weight: 3, Zone: "a", Drain: true, Source: Static},
		{Addr: at("10.0.0.2:2050"), Weight: 1, Source: Static},
	}
	must.Equal(t, got, want)
	must.Equal(t, fields(problems), []string{"spec[2].address", "spec[4].address"}, "problems: %v", problems)
}

func TestPortOfServiceIsBackendsDefault(t *testing.T) {
	got, problems := ParseBackends("b", []v1alpha1.NFSBackend{{Address: "fd00::1"}}, 20490)
	if len(problems) > 0 || len(got) != 1 || got[0].Addr != at("[fd00::1]:20490") {
		t.Errorf("got %v, %v", got, problems)
	}
}

func TestMergePrefersEarlierSource(t *testing.T) {
	static := []Backend{{Addr: at("10.0.0.2:2049"), Weight: 5, Source: Static}}
	pods := []Backend{
		{Addr: at("10.0.0.2:2049"), Weight: 1, Zone: "b", Drain: true, Source: Service},
		{Addr: at("10.0.0.1:2049"), Source: Service},
	}
	got := Merge(static, pods)
	want := []Backend{
		{Addr: at("10.0.0.1:2049"), Weight: 1, Source: Service},
		{Addr: at("10.0.0.2:2049"), Weight: 5, Zone: "b", Drain: true, Source: Static},
	}
	must.Equal(t, got, want)
	if static[0].Drain || pods[1].Weight != 0 {
		t.Error("Merge changed its input")
	}
}

func TestBackendsOfEndpointSlices(t *testing.T) {
	endpoint := func(address string, ready, serving, terminating *bool) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{
			Addresses: []string{address}, Zone: ptr.To("a"),
			Conditions: discoveryv1.EndpointConditions{Ready: ready, Serving: serving, Terminating: terminating},
		}
	}
	yes, no := ptr.To(true), ptr.To(false)
	ports := []discoveryv1.EndpointPort{{Name: ptr.To("metrics"), Port: ptr.To[int32](9587)}, {Name: ptr.To("nfs"), Port: ptr.To[int32](2049)}}
	list := []discoveryv1.EndpointSlice{
		{AddressType: discoveryv1.AddressTypeIPv4, Ports: ports, Endpoints: []discoveryv1.Endpoint{
			endpoint("10.0.0.1", yes, yes, no),
			endpoint("10.0.0.2", nil, nil, nil),
			endpoint("10.0.0.3", no, no, no),
			endpoint("10.0.0.4", no, yes, yes),
			endpoint("10.0.0.5", no, no, yes),
			endpoint("10.0.0.6", no, yes, no),
			{},
		}},
		{AddressType: discoveryv1.AddressTypeIPv4, Ports: ports, Endpoints: []discoveryv1.Endpoint{endpoint("10.0.0.1", yes, yes, no)}},
		{AddressType: discoveryv1.AddressTypeIPv4, Ports: ports[:1], Endpoints: []discoveryv1.Endpoint{endpoint("10.0.0.7", yes, yes, no)}},
		{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{endpoint("10.0.0.8", yes, yes, no)}},
		{AddressType: discoveryv1.AddressTypeIPv6, Ports: ports, Endpoints: []discoveryv1.Endpoint{endpoint("fd00::1", yes, yes, no)}},
	}
	var got []string
	for _, b := range FromEndpointSlices(list, discoveryv1.AddressTypeIPv4, "nfs") {
		text := b.Addr.String()
		if b.Drain {
			text += " drains"
		}
		if b.Zone != "a" || b.Source != Service {
			t.Errorf("got %+v", b)
		}
		got = append(got, text)
	}
	must.Equal(t, got, []string{"10.0.0.1:2049", "10.0.0.2:2049", "10.0.0.4:2049 drains", "10.0.0.7:9587"})
}

func TestCheckFamilies(t *testing.T) {
	both := []Backend{{Addr: at("10.0.0.1:2049")}, {Addr: at("[fd00::1]:2049")}}
	for exposure, want := range map[Exposure][]string{PerNode: nil, Stable: {"spec.backends"}, PerNodeStable: {"spec.backends"}} {
		must.Equal(t, fields(CheckFamilies("spec.backends", exposure, both)), want, "%s", exposure)
	}
}

func TestHealthReadsBack(t *testing.T) {
	for h := Unknown; h <= Down; h++ {
		must.Equal(t, ParseHealth(h.String()), h)
	}
	if ParseHealth("x") != Unknown || Health(9).String() != "Invalid" {
		t.Error("other values")
	}
}
