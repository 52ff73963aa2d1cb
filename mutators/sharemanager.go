package mutators

import (
	"fmt"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/fairlead-io/fairlead/internal/rwx"
)

// ShareManager is the view of Longhorn's ShareManager.
type ShareManager struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Endpoint string `json:"endpoint"`
	} `json:"status"`
}

// MutateShareManager derives the endpoint from the volume's Service: the Service's name if it is headless, else its
// address. So `nfs://None/…` (longhorn#9272) is impossible, and so is an FQDN without published addresses.
//
// Objects: sharemanagers.longhorn.io/status, in Longhorn's namespace.
// Condition: the endpoint is set; Longhorn empties it while the share is down.
// Source: proposal "Storage Network For RWX Volume", Service.
func MutateShareManager(sm ShareManager, namespace string, service *rwx.Service, clusterDomain string) Result {
	endpoint := sm.Status.Endpoint
	if endpoint == "" {
		return unchanged(ReasonNoEndpoint, "")
	}
	volume := sm.Metadata.Name
	if service == nil {
		if rwx.EndpointHost(endpoint) != rwx.ClusterIPNone {
			return unchanged(ReasonUpToDate, "the volume has no Service")
		}
		// Longhorn read None from a headless Service that is gone now.
		service = &rwx.Service{Name: volume, Namespace: namespace, Volume: volume, ClusterIP: rwx.ClusterIPNone}
	}
	want, ok := rwx.Endpoint(*service, clusterDomain)
	if !ok && rwx.EndpointHost(endpoint) == rwx.ClusterIPNone {
		want, ok = rwx.ServiceEndpoint(service.Name, namespace, clusterDomain, volume), true
	}
	if !ok {
		return unchanged(ReasonServiceIsUnready, "")
	}
	if want == endpoint {
		return unchanged(ReasonUpToDate, want)
	}
	return mutated(ReasonEndpoint, fmt.Sprintf("%s instead of %s", want, endpoint),
		jsonpatch.NewOperation("replace", "/status/endpoint", want))
}
