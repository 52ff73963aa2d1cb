package mutators

import (
	"slices"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// ClientTemplate is the view of the DaemonSet of the client pods.
type ClientTemplate struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Template       TemplateView   `json:"template"`
		UpdateStrategy UpdateStrategy `json:"updateStrategy"`
	} `json:"spec"`
}

// MutateClientTemplate keeps the clients' networks in the DaemonSet's template
// when the storage system writes the template anew, so that the pods need not
// be restarted for it.
//
// On an update it only keeps what the template had: adding a network to a
// template that is yet without would let Kubernetes restart every client, with
// no look at what is attached. That is the controller's to do.
//
// A template that changes while clients are on a network is not rolled out by
// Kubernetes but by the controller, where that applies settings: see pauseClients.
//
// Objects: the profile's client DaemonSet; writes by Fairlead's own controller are not sent here.
// Condition: a network of clients is recorded.
// Source: proposal "Storage Network For RWX Volume", CNI annotation.
func MutateClientTemplate(ds ClientTemplate, old *ClientTemplate, namespace string, record settings.Record, applies bool) Result {
	result := clientTemplateNetworks(ds, old, namespace, record)
	if applies && len(clientNetworks(record)) > 0 {
		result = result.and(pauseClients(ds, old))
	}
	return result
}

func clientTemplateNetworks(ds ClientTemplate, old *ClientTemplate, namespace string, record settings.Record) Result {
	t, networks := ds.Spec.Template, clientNetworks(record)
	if old != nil {
		networks = slices.DeleteFunc(networks, func(p storage.Placement) bool { return !asks(old.Spec.Template.Metadata, namespace, p.Network) })
		if len(networks) == 0 {
			return unchanged(ReasonNotRolledOut, "the template was not on the network before")
		}
	}
	return addNetworks("/spec/template/metadata", t.Metadata, t.Spec, namespace, networks, "clients are on it")
}
