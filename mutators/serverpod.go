package mutators

import (
	"fmt"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// ServerPod is the view of a pod that serves one shared volume.
type ServerPod struct {
	Metadata ComponentMetadata `json:"metadata"`
	Spec     PodSpec           `json:"spec"`
}

// MutateServerPod adds the volume's network to its server pod as it is created,
// with the addresses that are fixed for it there. Both are what the volume's
// Service has recorded, so that the two agree whatever is asked for by now. Only a volume without a Service
// takes what servers are on.
//
// Objects: pods with the profile's server labels, in its namespace.
// Source: proposal "Storage Network For RWX Volume", CNI annotation; longhorn#9272, harvester#10047.
func MutateServerPod(pod ServerPod, namespace string, service *storage.Service, record settings.Record) Result {
	places, why := joining(record.Servers), "servers are on it, and the volume has no Service yet"
	if service != nil {
		place := service.Placement(record.Clients)
		places, why = []storage.Placement{place}, fmt.Sprintf("Service %s has it recorded", service.Name)
		if place.Network.IsZero() {
			places, why = nil, fmt.Sprintf("Service %s has a cluster IP", service.Name)
		}
	}
	return addNetworks("/metadata", pod.Metadata.Metadata, pod.Spec, namespace, places, why)
}
