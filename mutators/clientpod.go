package mutators

import (
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// ClientPod is the view of a client pod: the CSI node plugin.
type ClientPod struct {
	Metadata Metadata `json:"metadata"`
	Spec     PodSpec  `json:"spec"`
}

// MutateClientPod gives a new client pod the networks that are recorded for clients: the default network and per-volume
// networks. The rule removes a network that the storage system added by a value that is not applied yet.
//
// Objects: pods with Longhorn's client labels, in its namespace.
// Condition: a record exists, and Fairlead applies settings.
// Source: proposal "Storage Network For RWX Volume", CNI annotation; longhorn#13695.
func MutateClientPod(pod ClientPod, names longhorn.Names, record rollout.Record) Result {
	if record.Unknown {
		return unchanged(ReasonNotRecorded, "")
	}
	return setNetworks("/metadata", pod.Metadata, pod.Spec, names, clientNetworks(record), recordedForClients)
}

const recordedForClients = "recorded for clients"

func clientNetworks(record rollout.Record) []multus.Placement {
	return append(joining(record.Clients), joining(record.VolumeClients...)...)
}
