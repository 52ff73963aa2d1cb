package storage

import (
	"fmt"
	"net/netip"
	"strings"
)

// ServiceEndpoint is the NFS URL of a volume whose Service is headless:
// nfs://<service>.<namespace>.svc.<cluster domain>/<volume>.
func ServiceEndpoint(service, namespace, clusterDomain, volume string) string {
	return fmt.Sprintf("nfs://%s.%s.svc.%s/%s", service, namespace, clusterDomain, volume)
}

// addressEndpoint is the NFS URL of a volume whose Service has a cluster IP.
func addressEndpoint(address netip.Addr, volume string) string {
	if address.Is6() {
		return fmt.Sprintf("nfs://[%s]/%s", address, volume)
	}
	return fmt.Sprintf("nfs://%s/%s", address, volume)
}

// Endpoint is the URL that follows from a volume's Service, so that the two can't
// disagree. ok is false when the Service has neither form, for example no
// cluster IP yet.
func Endpoint(s Service, clusterDomain string) (url string, ok bool) {
	if s.Headless() {
		return ServiceEndpoint(s.Name, s.Namespace, clusterDomain, s.Volume), true
	}
	address, err := netip.ParseAddr(s.ClusterIP)
	if err != nil {
		return "", false
	}
	return addressEndpoint(address, s.Volume), true
}

// EndpointHost returns the host of an NFS URL, "" when it has none.
func EndpointHost(url string) string {
	rest, found := strings.CutPrefix(url, "nfs://")
	if !found {
		return ""
	}
	host, _, _ := strings.Cut(rest, "/")
	return strings.Trim(host, "[]")
}
