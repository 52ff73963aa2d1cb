package mutators

import (
	"fmt"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// ServerPod is the view of a pod that serves one shared volume.
type ServerPod struct {
	Metadata struct {
		Metadata
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec PodSpec `json:"spec"`
}

// MutateServerPod adds the volume's network to its server pod as it is created.
// The network is the one that the volume's Service has recorded, so that the
// two agree whatever the settings say by now. Only a volume without a Service
// takes what servers are on.
//
// Objects: pods with the profile's server labels, in its namespace.
// Source: proposal "Storage Network For RWX Volume", CNI annotation; longhorn#9272.
func MutateServerPod(pod ServerPod, namespace string, service *storage.Service, record settings.Record) Result {
	network, why := record.Servers, "servers are on it, and the volume has no Service yet"
	if service != nil {
		network = service.Network(record.Clients)
		why = fmt.Sprintf("Service %s has it recorded", service.Name)
		if network.IsZero() {
			why = fmt.Sprintf("Service %s has a cluster IP", service.Name)
		}
	}
	return addNetwork("/metadata", pod.Metadata.Metadata, pod.Spec, namespace, network, why)
}
