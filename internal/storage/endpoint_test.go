package storage

import (
	"net/netip"
	"testing"
)

func TestEndpointFollowsTheService(t *testing.T) {
	for name, test := range map[string]struct {
		clusterIP string
		domain    string
		want      string
	}{
		"headless":                              {clusterIP: "None", domain: "cluster.local", want: "nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a"},
		"headless in a cluster of its own name": {clusterIP: "None", domain: "corp.example", want: "nfs://pvc-a.longhorn-system.svc.corp.example/pvc-a"},
		"cluster IP":                            {clusterIP: "10.43.7.9", domain: "cluster.local", want: "nfs://10.43.7.9/pvc-a"},
		"IPv6 cluster IP":                       {clusterIP: "fd00:43::9", domain: "cluster.local", want: "nfs://[fd00:43::9]/pvc-a"},
		"no cluster IP yet":                     {domain: "cluster.local"},
		"None in the wrong case is no address":  {clusterIP: "none", domain: "cluster.local"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Endpoint(Service{Namespace: "longhorn-system", Name: "pvc-a", Volume: "pvc-a", ClusterIP: test.clusterIP}, test.domain)
			if got != test.want || ok != (test.want != "") {
				t.Fatalf("got %q, %v; want %q", got, ok, test.want)
			}
		})
	}
}

func TestEndpointNamesServiceAndVolumeApart(t *testing.T) {
	got, _ := Endpoint(Service{Namespace: "ns", Name: "svc-a", Volume: "pvc-a", ClusterIP: "None"}, "cluster.local")
	if want := "nfs://svc-a.ns.svc.cluster.local/pvc-a"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

func TestEndpointHost(t *testing.T) {
	for url, want := range map[string]string{
		"nfs://10.43.7.9/pvc-a":                               "10.43.7.9",
		"nfs://[fd00:43::9]/pvc-a":                            "fd00:43::9",
		"nfs://None/pvc-a":                                    "None",
		"nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a": "pvc-a.longhorn-system.svc.cluster.local",
		"nfs://host":                                          "host",
		"nfs:///pvc-a":                                        "",
		"http://10.43.7.9/pvc-a":                              "",
		"":                                                    "",
	} {
		if got := EndpointHost(url); got != want {
			t.Errorf("%q: got %q, want %q", url, got, want)
		}
	}
}

func TestEndpointHostReadsWhatAddressEndpointWrites(t *testing.T) {
	for _, text := range []string{"10.0.0.1", "fd00::1"} {
		if got := EndpointHost(AddressEndpoint(netip.MustParseAddr(text), "v")); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}
