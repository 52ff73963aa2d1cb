package mutators

import "github.com/fairlead-io/fairlead/storage"

// ClientPod is the view of a client pod: the CSI node plugin.
type ClientPod struct {
	Metadata Metadata `json:"metadata"`
	Spec     PodSpec  `json:"spec"`
}

// MutateClientPod adds the clients' network to a client pod as it is created.
//
// Objects: pods with the profile's client labels, in its namespace.
// Condition: the clients' network is recorded.
// Source: proposal "Storage Network For RWX Volume", CNI annotation.
func MutateClientPod(pod ClientPod, namespace string, clients storage.Attachment) Result {
	return addNetwork("/metadata", pod.Metadata, pod.Spec, namespace, clients, "clients are on it")
}
