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
// On an update it only keeps what the template had: adding the network to a
// template that is yet without would let Kubernetes restart every client, with
// no look at what is attached. That is the controller's to do.
//
// Objects: the profile's client DaemonSet; writes by Fairlead's own controller are not sent here.
// Condition: the clients' network is recorded.
// Source: proposal "Storage Network For RWX Volume", CNI annotation.
func MutateClientTemplate(ds ClientTemplate, old *ClientTemplate, namespace string, clients storage.Attachment) Result {
	t := ds.Spec.Template
	if old != nil && !asks(old.Spec.Template.Metadata, namespace, clients) {
		return unchanged(ReasonNotRolledOut, "the template was not on the network before")
	}
	return addNetwork("/spec/template/metadata", t.Metadata, t.Spec, namespace, clients, "clients are on it")
}
