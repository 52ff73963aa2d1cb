package mutators

import (
	"slices"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
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

// MutateClientTemplate lets only Fairlead's controller change the networks of the DaemonSet's template. The storage system
// writes them before a setting's value is applied, and Kubernetes would then restart every client, also under mounts.
//
// A new template, from an installer or an upgrade, gets the recorded networks. An updated template keeps its networks.
// While mounts may live in clients, the controller restarts the clients, not Kubernetes: see pauseClients.
//
// Objects: Longhorn's client DaemonSet; writes by Fairlead's own controller are not sent here.
// Condition: a record exists, and Fairlead applies settings.
// Source: proposal "Storage Network For RWX Volume", CNI annotation; longhorn-manager
// v1.7.2 controller/setting_controller.go updateCNI, csi/deployment.go NewPluginDeployment.
func MutateClientTemplate(ds ClientTemplate, old *ClientTemplate, names longhorn.Names, record rollout.Record) Result {
	if record.Unknown {
		return unchanged(ReasonNotRecorded, "")
	}
	places, why := clientNetworks(record), recordedForClients
	if old != nil {
		var readable bool
		if places, readable = networksOf(old.Spec.Template.Metadata, names); !readable {
			return unchanged(ReasonUnreadable, "the networks of the stored template could not be read")
		}
		why = "only Fairlead's controller changes the networks of a template"
	}
	t := ds.Spec.Template
	result := setNetworks("/spec/template/metadata", t.Metadata, t.Spec, names, places, why)
	return result.and(pauseClients(ds, old, len(clientNetworks(record)) > 0 || record.MountsInClients))
}

// networksOf are the attachments on Longhorn's interfaces and on those of per-volume networks.
func networksOf(meta Metadata, names longhorn.Names) (places []multus.Placement, readable bool) {
	if meta.Annotations == nil {
		return nil, true
	}
	selections, err := multus.ParseSelections(meta.Annotations.Networks, names.Namespace)
	for _, s := range selections {
		if slices.Contains(names.Interfaces(), s.Interface) || s.ForVolumes() {
			places = append(places, multus.Placement{Network: s})
		}
	}
	return places, err == nil
}
