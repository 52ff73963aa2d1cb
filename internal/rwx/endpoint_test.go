package rwx

import (
	"net/netip"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestEndpointFollowsTheService(t *testing.T) {
	for name, test := range map[string]struct{ clusterIP, domain, want string }{
		"headless":               {"None", "cluster.local", "nfs://svc-a.ns.svc.cluster.local/pvc-a"},
		"headless, other domain": {"None", "corp.example", "nfs://svc-a.ns.svc.corp.example/pvc-a"},
		"cluster IP":             {"10.43.7.9", "cluster.local", "nfs://10.43.7.9/pvc-a"},
		"IPv6 cluster IP":        {"fd00:43::9", "cluster.local", "nfs://[fd00:43::9]/pvc-a"},
		"no cluster IP":          {"", "cluster.local", ""},
		"none in lower case":     {"none", "cluster.local", ""},
	} {
		got, ok := Endpoint(Service{Namespace: "ns", Name: "svc-a", Volume: "pvc-a", ClusterIP: test.clusterIP}, test.domain)
		must.Check(t, got == test.want && ok == (test.want != ""), "%s: got %q, %v; want %q", name, got, ok, test.want)
	}
}

func TestEndpointHost(t *testing.T) {
	for url, want := range map[string]string{
		addressEndpoint(netip.MustParseAddr("10.43.7.9"), "v"): "10.43.7.9", addressEndpoint(netip.MustParseAddr("fd00:43::9"), "v"): "fd00:43::9",
		"nfs://None/pvc-a": "None", "nfs://pvc-a.longhorn-system.svc.cluster.local/pvc-a": "pvc-a.longhorn-system.svc.cluster.local",
		"nfs://host": "host", "nfs:///pvc-a": "", "http://10.43.7.9/pvc-a": "", "": "",
	} {
		must.Equal(t, EndpointHost(url), want, "%q", url)
	}
}
