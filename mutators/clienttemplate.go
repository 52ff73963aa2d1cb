package mutators

import "github.com/fairlead-io/fairlead/storage"

// ClientTemplate is the view of the DaemonSet of the client pods.
type ClientTemplate struct {
	Spec struct {
		Template struct {
			Metadata Metadata `json:"metadata"`
			Spec     PodSpec  `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// MutateClientTemplate keeps the clients' network in the DaemonSet's template
// when the storage system writes the template anew, so that the pods need not
// be restarted for it.
//
// Objects: the profile's client DaemonSet; writes by Fairlead's own controller are not sent here.
// Condition: the clients' network is recorded.
// Source: proposal "Storage Network For RWX Volume", CNI annotation.
func MutateClientTemplate(ds ClientTemplate, namespace string, clients storage.Attachment) Result {
	t := ds.Spec.Template
	return addNetwork("/spec/template/metadata", t.Metadata, t.Spec, namespace, clients, "clients are on it")
}
