package mutators

import (
	"fmt"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// ServerPod is the view of a pod that serves one shared volume.
type ServerPod struct {
	Metadata ServerMetadata `json:"metadata"`
	Spec     PodSpec        `json:"spec"`
}

// ServerMetadata is the view of a server pod's metadata.
type ServerMetadata struct {
	Metadata
	Labels map[string]string `json:"labels"`
}

// MutateServerPod gives the new server pod of a volume the network and the fixed addresses that the volume's Service
// records, so that the two agree. Without a Service, the pod gets the network recorded for servers.
//
// Objects: pods with Longhorn's server labels, in its namespace.
// Condition: a record or a network recorded on the Service exists, and the Service does not opt out.
// Source: proposal "Storage Network For RWX Volume", CNI annotation; longhorn#9272,
// harvester#10047; longhorn-manager v1.7.2 controller/share_manager_controller.go createShareManagerPod.
func MutateServerPod(pod ServerPod, names longhorn.Names, service *rwx.Service, record rollout.Record) Result {
	if record.Unknown && (service == nil || service.Recorded.IsZero()) {
		return unchanged(ReasonNotRecorded, "")
	}
	places, why := joining(record.Servers), "recorded for servers; the volume has no Service yet"
	if service != nil {
		if service.OptOut {
			return unchanged(ReasonOptOut, fmt.Sprintf("annotation %s of Service %s", rwx.OptOutAnnotation, service.Name))
		}
		place := service.Placement(record.Clients)
		places, why = []multus.Placement{place}, fmt.Sprintf("recorded by Service %s", service.Name)
		if place.Network.IsZero() {
			places, why = nil, fmt.Sprintf("Service %s is for the cluster network", service.Name)
		}
	}
	return setNetworks("/metadata", pod.Metadata.Metadata, pod.Spec, names, places, why)
}
