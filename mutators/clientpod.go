package mutators

import (
	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// ClientPod is the view of a client pod: the CSI node plugin.
type ClientPod struct {
	Metadata Metadata `json:"metadata"`
	Spec     PodSpec  `json:"spec"`
}

// MutateClientPod adds the clients' networks to a client pod as it is created:
// the one of all volumes and those of single volumes.
//
// Objects: pods with the profile's client labels, in its namespace.
// Condition: a network of clients is recorded.
// Source: proposal "Storage Network For RWX Volume", CNI annotation; longhorn#13695.
func MutateClientPod(pod ClientPod, namespace string, record settings.Record) Result {
	return addNetworks("/metadata", pod.Metadata, pod.Spec, namespace, clientNetworks(record), "clients are on it")
}

func clientNetworks(record settings.Record) []storage.Placement {
	return append(joining(record.Clients), joining(record.VolumeClients...)...)
}
